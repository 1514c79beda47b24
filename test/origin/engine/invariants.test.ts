import { describe, expect, it } from 'vitest';
import { violations } from '../../../origin/engine/invariants.ts';
import { OpenRequest } from '../../../origin/engine/open-request.ts';
import { RunningSet } from '../../../origin/engine/running-set.ts';
import { submission } from './support/submissions.ts';

/** Returns two slots with one prompt in prefill, its second choice admitted and its third one waiting. */
function busyRunningSet(): { readonly running: RunningSet; readonly request: OpenRequest } {
  const running = new RunningSet({ slots: 2, contextLength: 64, prefillChunk: 8 }, 10);
  const request = new OpenRequest(submission({ requestId: 'r', choices: 3 }), {
    grammar: null,
    stopPatterns: null,
    bannedPatterns: null,
    images: [],
    eosIds: [],
    submittedAt: 0,
    deadline: 1,
  });
  running.open(request);
  running.prefixes.assign(running.nextPrefill(running.prefills[0]!.request.account)!);
  return { running, request };
}

describe('the invariants', () => {
  it('hold while a request runs', () => {
    expect(violations(busyRunningSet().running)).toEqual([]);
  });

  it.each<[string, RegExp, (running: RunningSet, request: OpenRequest) => void]>([
    ['a slot that is used but free', /not held/, ({ kv, prefills }) => kv.release(prefills[0]!.slot, false)],
    [
      'a slot that is held but not used',
      /2 slots are held, 1 are used/,
      ({ kv }) => kv.assign(Int32Array.of(1), 'x', Infinity),
    ],
    ['a closed request that still has a slot', /not open/, (_, request) => request.close()],
    ['a request that is missing from the open ones', /not open/, ({ requests }) => requests.clear()],
    [
      'a sequence that is missing',
      /should wait/,
      (_, request) => {
        request.unfinished++;
      },
    ],
    [
      'a request without unfinished sequences',
      /no unfinished sequence/,
      (_, request) => {
        request.unfinished = 0;
      },
    ],
    [
      'a slot that keeps more than is computed',
      /keeps more/,
      ({ kv, prefills }) => {
        kv.record(prefills[0]!.slot, 64);
        prefills[0]!.computed = -1;
      },
    ],
  ])('report %s', (_, rule, damage) => {
    const { running, request } = busyRunningSet();
    damage(running, request);
    expect(violations(running).join('; ')).toMatch(rule);
  });
});

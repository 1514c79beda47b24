import { describe, expect, it } from 'vitest';
import { violations } from '../../../origin/engine/invariants.ts';
import { OpenRequest } from '../../../origin/engine/open-request.ts';
import { RunningSet } from '../../../origin/engine/running-set.ts';
import { submission } from './support/submissions.ts';

/** Two slots: one prompt in prefill in its slot, its second choice admitted, a third one waiting. */
function busyRunningSet(): { readonly running: RunningSet; readonly request: OpenRequest } {
  const running = new RunningSet({ slots: 2, contextLength: 64, prefillChunk: 8 }, 10);
  const request = new OpenRequest(submission({ requestId: 'r', choices: 3 }), {
    grammar: null,
    images: [],
    eosIds: [],
    submittedAt: 0,
    deadline: 1,
  });
  running.open(request);
  running.assignSlot(running.nextPrefill()!);
  return { running, request };
}

describe('the invariants', () => {
  it('hold while a request is on its way', () => {
    expect(violations(busyRunningSet().running)).toEqual([]);
  });

  it.each<[string, RegExp, (running: RunningSet, request: OpenRequest) => void]>([
    ['a slot freed behind its user', /not held/, ({ kv, prefills }) => kv.release(prefills[0]!.slot, false)],
    [
      'a slot held by nobody',
      /2 slots are held, 1 are used/,
      ({ kv }) => kv.assign(Int32Array.of(1), 'x', true),
    ],
    ['a request that is closed but still seated', /not open/, (_, request) => request.close()],
    ['a request that is forgotten', /not open/, ({ requests }) => requests.clear()],
    [
      'a sequence that is lost',
      /should wait/,
      (_, request) => {
        request.unfinished++;
      },
    ],
    [
      'a request with nothing left to do',
      /no unfinished sequence/,
      (_, request) => {
        request.unfinished = 0;
      },
    ],
    [
      'a row that claims more than is computed',
      /keeps more/,
      ({ kv, prefills }) => {
        kv.record(prefills[0]!.slot, 64);
        prefills[0]!.computed = -1;
      },
    ],
  ])('name %s', (_, rule, damage) => {
    const { running, request } = busyRunningSet();
    damage(running, request);
    expect(violations(running).join('; ')).toMatch(rule);
  });
});

import { describe, expect, it } from 'vitest';
import { KvSlots } from '../../../../origin/engine/kv/kv-slots.ts';
import { OpenRequest } from '../../../../origin/engine/sequences/open-request.ts';
import { violations } from '../../../../origin/engine/state/invariants.ts';
import { PrefixCache } from '../../../../origin/engine/state/prefix-cache.ts';
import { RunningSet } from '../../../../origin/engine/state/running-set.ts';
import { Scheduler } from '../../../../origin/engine/state/scheduler.ts';
import { submission } from '../support/submissions.ts';

/** Returns two slots with one prompt in prefill, its second choice admitted and its third one waiting. */
function busyState() {
  const chunk = 8;
  const kv = new KvSlots({ slots: 2, contextLength: 64, prefillChunk: chunk });
  const prefixes = new PrefixCache(kv, null, null, chunk);
  const running = new RunningSet(kv, prefixes);
  const scheduler = new Scheduler({ kv, store: null, prefixes, running, maxWaiting: 10, chunk });
  const request = new OpenRequest(submission({ requestId: 'r', choices: 3 }), {
    grammar: null,
    stopPatterns: null,
    bannedPatterns: null,
    images: [],
    eosIds: [],
    submittedAt: 0,
    deadline: 1,
  });
  scheduler.open(request);
  const prefill = running.nextPrefill(request.account)!;
  prefixes.assign(prefill);
  return { state: scheduler.state, request, prefill };
}

describe('the invariants', () => {
  it('hold while a request runs', () => {
    expect(violations(busyState().state)).toEqual([]);
  });

  it.each<[string, RegExp, (busy: ReturnType<typeof busyState>) => void]>([
    [
      'a slot that is used but free',
      /not held/,
      ({ state, prefill }) => state.kv.release(prefill.slot, false),
    ],
    [
      'a slot that is held but not used',
      /2 slots are held, 1 are used/,
      ({ state }) => state.kv.assign(Int32Array.of(1), 'x', Infinity),
    ],
    ['a closed request that still has a slot', /not open/, ({ request }) => request.close()],
    [
      'a request that is missing from the open ones',
      /not open/,
      ({ state }) => (state.requests as Map<string, OpenRequest>).clear(),
    ],
    [
      'a sequence that is missing',
      /should wait/,
      ({ request }) => {
        request.unfinished++;
      },
    ],
    [
      'a request without unfinished sequences',
      /no unfinished sequence/,
      ({ request }) => {
        request.unfinished = 0;
      },
    ],
    [
      'a slot that keeps more than is computed',
      /keeps more/,
      ({ state, prefill }) => {
        state.kv.record(prefill.slot, 64);
        prefill.computed = -1;
      },
    ],
  ])('report %s', (_, rule, damage) => {
    const busy = busyState();
    damage(busy);
    expect(violations(busy.state).join('; ')).toMatch(rule);
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  allows,
  type BreakerState,
  CLOSED,
  FAILURES,
  FIRST_PAUSE_MS,
  failed,
  LONGEST_PAUSE_MS,
  PROBE_MS,
  started,
  succeeded,
  withdrawn,
} from '../../../worker/upstreams/circuit-breaker.ts';

const START = 1_000_000;

const broken = (): BreakerState =>
  Array.from({ length: FAILURES }).reduce<BreakerState>((state) => failed(state, START), CLOSED);

describe('circuit breaker', () => {
  test('opens after FAILURES failures in a row, not earlier', () => {
    let state = CLOSED;
    for (let count = 1; count < FAILURES; count += 1) {
      state = failed(state, START);
      expect(allows(state, START)).toBe(true);
    }
    expect(allows(failed(state, START), START)).toBe(false);
    expect(allows(failed(succeeded(), START), START)).toBe(true);
  });

  test('half-open lets exactly one probe through, whose success closes it', () => {
    const later = START + FIRST_PAUSE_MS;
    expect(allows(broken(), later - 1)).toBe(false);
    expect(allows(broken(), later)).toBe(true);
    const probing = started(broken(), later);
    expect(allows(probing, later)).toBe(false);
    expect(allows(succeeded(), later)).toBe(true);
  });

  test('a failed probe opens it for twice as long; a withdrawn or lost one may be repeated', () => {
    const later = START + FIRST_PAUSE_MS;
    const probing = started(broken(), later);
    const again = failed(probing, later);
    const second = later + 2 * FIRST_PAUSE_MS;
    expect(allows(again, second - 1)).toBe(false);
    expect(allows(again, second)).toBe(true);
    const third = failed(started(again, second), second);
    expect(allows(third, second + 4 * FIRST_PAUSE_MS - 1)).toBe(false);
    expect(allows(third, second + 4 * FIRST_PAUSE_MS)).toBe(true);
    expect(allows(withdrawn(probing), later)).toBe(true);
    expect(allows(probing, later + PROBE_MS)).toBe(true);
  });

  test('any sequence: allows a request again within the longest pause, never two probes at once', () => {
    const step = fc.record({ do: fc.constantFrom('fail', 'start', 'succeed', 'withdraw'), ms: fc.nat(5000) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let state = CLOSED;
        let now = START;
        for (const { do: what, ms } of steps) {
          now += ms;
          if (what === 'fail') state = failed(state, now);
          else if (what === 'succeed') state = succeeded();
          else if (what === 'withdraw') state = withdrawn(state);
          else if (allows(state, now)) {
            state = started(state, now);
            if (state.openUntil !== null) expect(allows(state, now)).toBe(false);
          }
          expect(allows(state, now + Math.max(LONGEST_PAUSE_MS, PROBE_MS))).toBe(true);
        }
      }),
    );
  });
});

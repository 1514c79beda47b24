import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { replayGuard, SIGNATURE_WINDOW_MS } from '../../../origin/http/authentication.ts';

describe('the replay guard', () => {
  test('accepts each nonce once while its signature is valid, like a plain list of all arrivals', () => {
    const arrival = fc.record({ nonce: fc.constantFrom('a', 'b', 'c'), wait: fc.nat(SIGNATURE_WINDOW_MS) });
    fc.assert(
      fc.property(fc.array(arrival, { maxLength: 40 }), (arrivals) => {
        const accept = replayGuard();
        const accepted: { nonce: string; at: number }[] = [];
        let now = 0;
        for (const { nonce, wait } of arrivals) {
          now += wait;
          const known = accepted.some((old) => old.nonce === nonce && now < old.at + 2 * SIGNATURE_WINDOW_MS);
          expect(accept(nonce, now)).toBe(!known);
          if (!known) accepted.push({ nonce, at: now });
        }
      }),
    );
  });

  test('never exceeds its capacity, and refuses new nonces rather than forget valid ones', () => {
    const accept = replayGuard(2);
    expect([accept('a', 0), accept('b', 0), accept('c', 0)]).toEqual([true, true, false]);
    expect(accept('a', 1)).toBe(false);
    expect(accept('c', 2 * SIGNATURE_WINDOW_MS)).toBe(true);
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ReplayGuard, SIGNATURE_WINDOW_MS } from '../../../origin/http/authentication.ts';

describe('ReplayGuard', () => {
  test('accepts each nonce once while its signature is valid, like a plain list of all arrivals', () => {
    const arrival = fc.record({ nonce: fc.constantFrom('a', 'b', 'c'), wait: fc.nat(SIGNATURE_WINDOW_MS) });
    fc.assert(
      fc.property(fc.array(arrival, { maxLength: 40 }), (arrivals) => {
        const guard = new ReplayGuard();
        const accepted: { nonce: string; at: number }[] = [];
        let now = 0;
        for (const { nonce, wait } of arrivals) {
          now += wait;
          const known = accepted.some((old) => old.nonce === nonce && now < old.at + 2 * SIGNATURE_WINDOW_MS);
          expect(guard.accept(nonce, now)).toBe(!known);
          if (!known) accepted.push({ nonce, at: now });
        }
      }),
    );
  });

  test('never exceeds its capacity, and refuses new nonces rather than forget valid ones', () => {
    const guard = new ReplayGuard(2);
    expect([guard.accept('a', 0), guard.accept('b', 0), guard.accept('c', 0)]).toEqual([true, true, false]);
    expect(guard.accept('a', 1)).toBe(false);
    expect(guard.accept('c', 2 * SIGNATURE_WINDOW_MS)).toBe(true);
  });
});

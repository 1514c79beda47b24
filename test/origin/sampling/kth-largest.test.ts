import fc from 'fast-check';
import { expect, it } from 'vitest';
import { kthLargest } from '../../../origin/sampling/truncation/kth-largest.ts';

it('the k-th largest is what a sort has there, ties and −∞ included, and the numbers stay the same ones', () => {
  const number = fc.oneof(
    fc.integer({ min: -3, max: 3 }),
    fc.double({ noNaN: true }),
    fc.constant(-Infinity),
  );
  fc.assert(
    fc.property(fc.array(number, { minLength: 1, maxLength: 60 }), fc.nat(), (numbers, at) => {
      // What lies behind does not count.
      const values = Float64Array.of(...numbers, Number.MAX_VALUE);
      const descending = numbers.toSorted((a, b) => (a < b ? 1 : a > b ? -1 : 0));
      const k = (at % numbers.length) + 1;
      expect(kthLargest(values, numbers.length, k) - descending[k - 1]! || 0).toBe(0);
      const left = [...values.subarray(0, numbers.length)].toSorted((a, b) => (a < b ? 1 : a > b ? -1 : 0));
      expect(left.map((x) => x + 0)).toEqual(descending.map((x) => x + 0));
    }),
    { numRuns: 500 },
  );
});

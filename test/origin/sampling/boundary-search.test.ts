import fc from 'fast-check';
import { expect, it } from 'vitest';
import { BoundarySearch } from '../../../origin/sampling/boundary-search.ts';
import { Candidates } from '../../../origin/sampling/candidates.ts';
import { runs } from '../../support/random.ts';

const anyNumber = fc.oneof(
  fc.integer({ min: -3, max: 3 }),
  fc.double({ noNaN: true }),
  fc.constant(-Infinity),
);

it('finds the k-th largest number that a sort finds, ties and −∞ included', () => {
  fc.assert(
    fc.property(fc.array(anyNumber, { minLength: 1, maxLength: 60 }), fc.nat(), (numbers, at) => {
      // Numbers after the first `count` do not take part.
      const values = Float64Array.of(...numbers, Number.MAX_VALUE);
      const descending = numbers.toSorted((a, b) => (a < b ? 1 : a > b ? -1 : 0));
      const k = (at % numbers.length) + 1;
      const found = new Candidates(61).kthLargest(values, numbers.length, k);
      expect(found - descending[k - 1]! || 0).toBe(0);
      expect([...values.subarray(0, numbers.length)]).toEqual(numbers);
    }),
    { numRuns: runs(500) },
  );
});

it('finds the boundary of the shortest prefix that has the weight and the number asked for', () => {
  // Sixteenths add up exactly in any order.
  const anyItem = fc.record({
    key: fc.integer({ min: 0, max: 8 }).map((key) => key / 8),
    weight: fc.integer({ min: 0, max: 16 }).map((weight) => weight / 16),
  });
  const anyTarget = fc.record({
    minWeight: fc.integer({ min: 0, max: 200 }).map((weight) => weight / 16),
    minCount: fc.integer({ min: 1, max: 45 }),
  });
  const search = new BoundarySearch(40);
  fc.assert(
    fc.property(fc.array(anyItem, { minLength: 1, maxLength: 40 }), anyTarget, (items, target) => {
      const { minWeight, minCount } = target;
      const [keys, weights] = [items.map(({ key }) => key), items.map(({ weight }) => weight)];
      search.run(Float64Array.from(keys), Float64Array.from(weights), items.length, minWeight, minCount);
      const reaches = (key: number) => {
        const prefix = items.filter((item) => item.key >= key);
        return prefix.length >= minCount && prefix.reduce((sum, { weight }) => sum + weight, 0) >= minWeight;
      };
      expect(search.boundary).toBe(Math.max(-Infinity, ...keys.filter(reaches)));
      const above = items.filter(({ key }) => key > search.boundary);
      expect(search.aboveCount).toBe(above.length);
      expect(search.aboveWeight).toBe(above.reduce((sum, { weight }) => sum + weight, 0));
    }),
    { numRuns: runs(1000) },
  );
});

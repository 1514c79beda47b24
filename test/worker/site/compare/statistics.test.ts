import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { histogram, summarize } from '../../../../worker/site/compare/statistics.ts';

const finite = fc.integer({ min: -1e9, max: 1e9 }).map((value) => value / 1000);
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

describe('summarize', () => {
  test('returns mean, sample deviation and median', () => {
    expect(summarize([2, 4, 4, 10])).toEqual({ count: 4, mean: 5, deviation: Math.sqrt(12), median: 4 });
    expect(summarize([7])).toEqual({ count: 1, mean: 7, deviation: 0, median: 7 });
    expect(summarize([])).toBeNull();
  });
});

describe('histogram', () => {
  test('every value is counted once, in the bin that contains it', () => {
    fc.assert(
      fc.property(fc.array(fc.array(finite, { maxLength: 40 }), { minLength: 1, maxLength: 2 }), (series) => {
        const result = histogram(series, false);
        fc.pre(result !== null);
        expect(result.counts.map(sum)).toEqual(series.map((list) => list.length));
        expect(result.edges.length).toBeLessThanOrEqual(26);
        const [first, last] = [result.edges[0]!, result.edges.at(-1)!];
        for (const value of series.flat()) {
          expect(value).toBeGreaterThanOrEqual(first);
          expect(value).toBeLessThanOrEqual(last + result.width);
        }
      }),
    );
  });

  test('lengths have bins of whole tokens that both series share', () => {
    expect(histogram([[3, 3, 5], [4]], true)).toEqual({
      edges: [3, 4, 5],
      width: 1,
      counts: [
        [2, 0, 1],
        [0, 1, 0],
      ],
    });
    expect(histogram([[1, 128]], true)?.width).toBe(10);
  });

  test('equal values have one bin', () => {
    expect(histogram([[-3.5, -3.5]], false)).toEqual({
      ...{ edges: [-4], width: 1 },
      counts: [[2]],
    });
  });
});

import { expect, test } from 'vitest';
import { summarize } from '../../../../worker/site/compare/statistics.ts';

test('a summary has mean, sample deviation and median', () => {
  expect(summarize([2, 4, 4, 10])).toEqual({ mean: 5, deviation: Math.sqrt(12), median: 4 });
  expect(summarize([7])).toEqual({ mean: 7, deviation: 0, median: 7 });
  expect(summarize([])).toBeNull();
});

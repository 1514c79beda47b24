import { expect, test } from 'vitest';
import {
  decileOf,
  jointLogprob,
  percent,
  perplexityOf,
  tintClass,
} from '../../../../worker/site/tokens/probability.ts';

test.each([
  [0, 9, '100.0 %'],
  [Math.log(0.412), 4, '41.2 %'],
  [Math.log(0.1), 1, '10.0 %'],
  [Math.log(0.0005), 0, '0.050 %'],
  [-100, 0, '< 0.000001 %'],
])('the logprob %d is in decile %i and shown as %s', (logprob, decile, shown) => {
  expect([decileOf(logprob), percent(logprob)]).toEqual([decile, shown]);
});

test('a token without a probability has no tint', () => {
  expect([tintClass(null), tintClass(-0.01)]).toEqual(['token', 'token p9']);
});

test('the perplexity of n equally likely choices is n, and tokens without a logprob do not count', () => {
  expect(perplexityOf([null, Math.log(1 / 8), Math.log(1 / 8)])).toBeCloseTo(8);
  expect(perplexityOf([null])).toBeNull();
});

test('the tokens of one character have the product of their probabilities', () => {
  expect(jointLogprob([{ logprob: -1 }, { logprob: -2 }])).toBe(-3);
  expect(jointLogprob([{ logprob: -1 }, { logprob: null }])).toBeNull();
});

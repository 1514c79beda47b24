import { expect, test } from 'vitest';
import {
  jointLogprob,
  percent,
  perplexityOf,
  probabilityBeside,
  tintClass,
  tintLevel,
} from '../../../../worker/site/tokens/probability.ts';

test.each([
  [0, 0, '100.0 %'],
  [Math.log(0.251), 0, '25.1 %'],
  [Math.log(0.249), 1, '24.9 %'],
  [Math.log(0.15), 1, '15.0 %'],
  [Math.log(0.09), 2, '9.0 %'],
  [Math.log(0.016), 4, '1.6 %'],
  [Math.log(0.0005), 5, '0.050 %'],
  [-100, 5, '< 0.000001 %'],
])('the logprob %d has tint %i and is shown as %s', (logprob, level, shown) => {
  expect([tintLevel(logprob), percent(logprob)]).toEqual([level, shown]);
});

test('what is not listed has the rest of the probability', () => {
  expect(probabilityBeside([{ logprob: Math.log(0.5) }, { logprob: Math.log(0.2) }])).toBeCloseTo(0.3);
  expect(probabilityBeside([{ logprob: 0 }, { logprob: Math.log(0.001) }])).toBe(0);
});

test('a token without a probability has no tint', () => {
  expect([tintClass(null), tintClass(-0.01)]).toEqual(['token', 'token s0']);
});

test('the perplexity of n equally likely choices is n, and tokens without a logprob do not count', () => {
  const tokens = [null, Math.log(1 / 8), Math.log(1 / 8)].map((logprob) => ({ logprob }));
  expect(perplexityOf(tokens)).toBeCloseTo(8);
  expect(perplexityOf(tokens.slice(0, 1))).toBeNull();
});

test('the tokens of one character have the product of their probabilities', () => {
  expect(jointLogprob([{ logprob: -1 }, { logprob: -2 }])).toBe(-3);
  expect(jointLogprob([{ logprob: -1 }, { logprob: null }])).toBeNull();
});

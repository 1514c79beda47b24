import { expect, test } from 'vitest';
import { refusal } from './parsing.ts';

const refused = 'a field with custom checks reports the received type';

test.each([
  ['a number', { logit_bias: 1 }, 'invalid_type', 'logit_bias'],
  ['a string', { logit_bias: 'x' }, 'invalid_type', 'logit_bias'],
  ['a boolean', { logit_bias: true }, 'invalid_type', 'logit_bias'],
  ['a number', { grammar: { type: 'regex', value: 5 } }, 'invalid_type', 'grammar.value'],
  ['an array', { grammar: { type: 'lark', value: ['a'] } }, 'invalid_type', 'grammar.value'],
  ['empty string', { grammar: { type: 'regex', value: '' } }, 'empty_string', 'grammar.value'],
])(`${refused}: %s in %j`, (kind, fields, code, param) => {
  expect(refusal(fields)).toMatchObject({ code, param, message: expect.stringContaining(kind) });
});

test.each([
  ['openai', 5],
  ['vllm', 20],
] as const)('the error of too many alternatives names the maximum of the dialect %s', (dialect, maximum) => {
  for (const field of ['logprobs', 'top_logprobs', 'n_probs', 'prompt_logprobs']) {
    for (const value of [21, 2 ** 31, 2 ** 53, 1e300])
      expect(refusal({ [field]: value }, dialect)).toMatchObject({
        code: 'integer_above_max_value',
        param: field,
        message: expect.stringContaining(`Expected a value <= ${maximum}, but got ${value} instead.`),
      });
    expect(refusal({ [field]: 0.5 }, dialect)).toMatchObject({ code: 'invalid_type', param: field });
    expect(refusal({ [field]: -1 }, dialect)).toMatchObject({
      code: 'integer_below_min_value',
      param: field,
    });
  }
});

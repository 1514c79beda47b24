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

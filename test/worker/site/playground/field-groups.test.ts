import { expect, test } from 'vitest';
import { requestFields } from '../../../../worker/site/build/request-fields.ts';
import { FIELD_GROUPS } from '../../../../worker/site/playground/field-groups.ts';

const FIELDS = requestFields();

/** Fields that the page sets in other ways, and how. */
const FIELDS_ELSEWHERE: Readonly<Record<string, string>> = {
  model: 'the header of the page',
  prompt: 'the text',
  suffix: 'the text after the insertion mark',
  stream: 'the playground always streams',
  stream_interval: 'an event has one token with logprobs',
  stream_options: 'the playground always asks for usage',
  best_of: 'not available with streams',
  prompt_logprobs: 'not available with streams; echo shows the same',
  prompt_logprob_start: 'echo shows the logprobs of the whole prompt',
  logprob_token_ids: 'the page shows the most likely tokens',
  logprobs_format: 'the page shows the most likely tokens',
  return_tokens_as_token_ids: 'the page needs the bytes of tokens',
  timings_per_token: 'the page measures by itself',
};

test('every request field is in one group, set elsewhere, an alias, or not supported', () => {
  const placed = [...FIELD_GROUPS.flatMap(({ fields }) => fields), ...Object.keys(FIELDS_ELSEWHERE)];
  expect(new Set(placed).size).toBe(placed.length);
  expect(placed.filter((name) => !(name in FIELDS))).toEqual([]);
  const missing = Object.entries(FIELDS)
    .filter(([name]) => !placed.includes(name))
    .filter(([, { description }]) => !/^(Alias of|Not supported)/.test(description))
    .map(([name]) => name);
  expect(missing).toEqual([]);
});

test('every field has an explanation in one sentence or two', () => {
  expect(Object.entries(FIELDS).filter(([, { description }]) => description.length < 10)).toEqual([]);
});

test.each([
  ['temperature', { kind: 'number', minimum: 0, maximum: 2 }],
  ['max_tokens', { kind: 'integer', minimum: -1 }],
  ['seed', { kind: 'integer' }],
  ['logprobs', { kind: 'integer', minimum: 0 }],
  ['stop', { kind: 'texts' }],
  ['stop_token_ids', { kind: 'ids' }],
  ['echo', { kind: 'flag' }],
  ['top_n_sigma', { kind: 'number' }],
  ['truncation_side', { kind: 'choice', values: ['left', 'right'] }],
  ['logit_bias', { kind: 'json' }],
])('the field %s has the right control', (name, expected) => {
  expect(FIELDS[name]).toMatchObject(expected);
});

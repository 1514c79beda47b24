import { expect, test } from 'vitest';
import { requestFields } from '../../../../worker/site/build/request-fields.ts';
import { FIELD_GROUPS, FIELDS_ELSEWHERE } from '../../../../worker/site/playground/field-groups.ts';

const FIELDS = requestFields();

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

import { expect, test } from 'vitest';
import type { RequestField } from '../../../../worker/site/api/request-field.ts';
import { readValue, writeValue } from '../../../../worker/site/playground/field-values.ts';

const field = (kind: RequestField['kind'], bounds: Partial<RequestField> = {}): RequestField => ({
  description: '',
  kind,
  ...bounds,
});

test.each<[RequestField['kind'], unknown]>([
  ['number', 0.85],
  ['integer', -1],
  ['texts', [' ']],
  ['texts', ['\n\n', ' a', 'back\\slash\tand tab', 'é']],
  ['ids', [12, 345]],
  ['json', { a: [1, null] }],
  ['json', { text: '9007199254740993', maximum: 2 ** 60, small: 0.12345678901234568 }],
  ['text', ' spaces stay '],
])('a value of kind %s is read as it was written', (kind, value) => {
  expect(readValue(field(kind), writeValue(kind, value))).toEqual({ value });
});

test.each<[RequestField['kind']]>([['number'], ['integer'], ['texts'], ['ids'], ['json'], ['text']])(
  'an empty control of kind %s sends nothing',
  (kind) => {
    expect(writeValue(kind, undefined)).toBe('');
    expect(readValue(field(kind), '')).toEqual({ value: undefined });
  },
);

test.each([
  [field('number', { maximum: 2 }), '2.5', 'At most 2.', 2],
  [field('integer', { minimum: -1 }), '-2', 'At least -1.', -1],
  [field('integer'), '1.5', 'A whole number is needed.'],
  [field('number'), 'warm', 'warm is not a number.'],
  [field('ids'), '1, two', 'two is not a token id.'],
  [field('json'), '{', expect.stringContaining('JSON')],
  [field('json'), '{"maximum": -9007199254740993}', expect.stringContaining('-9007199254740993')],
])('%o rejects %j: %s', (of, written, fault, allowed?: number) => {
  expect(readValue(of, written)).toEqual({ fault, ...(allowed !== undefined && { allowed }) });
});

import { expect, test } from 'vitest';
import { bodyOf, type FormField, textsOf } from '../../../../../worker/site/account/form/form-fields.ts';

const field = (kind: NonNullable<FormField['kind']>): FormField => ({ name: 'value', title: 'Value', kind });

test.each([
  ['flag', true, '', false],
  ['money', 1_500_000, '0.000001', 1],
  ['percent', 505, '12.5', 125],
  ['time', 90_060, '1970-01-03T00:00', 172_800],
  ['lines', ['a', 'b'], 'b', ['b']],
  ['words', ['a', 'b'], 'b', ['b']],
  ['number', 5, '', null],
  ['json', { a: 1 }, '{"a": 2}', { a: 2 }],
] as const)('a field of the kind %s sends only another value', (kind, value, text, changed) => {
  const record = { value };
  const texts = textsOf([field(kind)], record);
  expect(bodyOf([field(kind)], texts, record)).toEqual({});
  expect(bodyOf([field(kind)], { value: text }, record)).toEqual({ value: changed });
  // A new record with these texts has the same value.
  expect(bodyOf([field(kind)], texts, null)).toEqual({ value });
});

test('of pairs that the server merges, a change sends those that differ, and null for each that went', () => {
  const record = { value: { old: 'default', gone: 'default' } };
  const change = (text: string) => bodyOf([field('changedPairs')], { value: text }, record);
  expect(change('old: other\ngone: default\nconstructor: a')).toEqual({
    value: { old: 'other', constructor: 'a' },
  });
  expect(change('')).toEqual({ value: { old: null, gone: null } });
});

test.each([
  ['money', '0.1234567', 6],
  ['money', '1e-7', 6],
  ['percent', '12.55', 1],
] as const)('an amount of the kind %s is not rounded: %s is refused', (kind, text, places) => {
  expect(() => bodyOf([field(kind)], { value: text }, null)).toThrow(
    `${text} has more than ${places} decimal places.`,
  );
  expect(bodyOf([field('money')], { value: '123456789.123457' }, null)).toEqual({
    value: 123_456_789_123_457,
  });
});

test('what is no JSON is refused before it is sent', () => {
  expect(() => bodyOf([field('json')], { value: '{' }, null)).toThrow('The settings are not JSON');
});

import { expect, test } from 'vitest';
import { errorPlace, pointerPlace } from '../../../../worker/site/constraint/error-place.ts';

const SCHEMA = `{
  "type": "object",
  "properties": { "a/b": { "type": "strin" }, "list": { "prefixItems": [true, { "minimum": "x" }] } }
}`;

const marked = (source: string, { from, to }: { from: number; to: number }) => source.slice(from, to);

test.each([
  ['#/properties/a~1b/type', '"strin"'],
  ['#/properties/list/prefixItems/1/minimum', '"x"'],
  ['#/type', '"object"'],
  ['#', SCHEMA],
])('the error at %s marks %s', (pointer, expected) => {
  const place = errorPlace(SCHEMA, `Invalid 'json_schema': ${pointer}: wrong`);
  expect(marked(SCHEMA, place)).toBe(expected);
});

test('a line and a column mark the word there', () => {
  const grammar = 'root ::= "a"\nb ::= foo-bar "c"';
  const message = `Invalid 'grammar': Rule "foo-bar" is used but not defined at line 2, column 7`;
  expect(marked(grammar, errorPlace(grammar, message))).toBe('foo-bar');
});

test('a place at the end of the source marks the last character', () => {
  expect(errorPlace('ab', 'Unexpected end at line 1, column 3')).toEqual({ from: 1, to: 2 });
});

test('a message without a place marks everything, and a wrong pointer has no place', () => {
  expect(errorPlace('abc', 'Too complex.')).toEqual({ from: 0, to: 3 });
  expect(pointerPlace(SCHEMA, '/none')).toBeNull();
});

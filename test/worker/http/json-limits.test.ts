import fc from 'fast-check';
import { expect, test } from 'vitest';
import { complexityFault } from '../../../worker/http/json-limits.ts';

const listOf = (count: number, item: string) => `[${Array(count).fill(item).join(', ')}]`;

test.each([
  ['lists', '[', ']'],
  ['objects', '{"a":', '}'],
])('accepts 264 nested %s and rejects 265', (_, open, close) => {
  const nested = (depth: number) => `${open.repeat(depth)}1${close.repeat(depth)}`;
  expect(complexityFault(nested(264))).toBeNull();
  expect(complexityFault(nested(265))?.message).toBe('it is nested deeper than 264 levels');
});

test.each(['{}', '[ ]', '"a, [\\"{\\\\"'])('accepts 100,000 values and rejects more: %s', (item) => {
  // The list is a value, too.
  expect(complexityFault(listOf(99_999, item))).toBeNull();
  expect(complexityFault(listOf(100_000, item))?.message).toBe(
    'it has more than 100000 strings, lists and objects',
  );
});

test('counts names of fields, and no numbers', () => {
  const field = (_: unknown, index: number) => [`f${index}`, 1];
  const fields = (length: number) => JSON.stringify(Object.fromEntries(Array.from({ length }, field)));
  expect(complexityFault(fields(99_999))).toBeNull();
  expect(complexityFault(fields(100_000))).not.toBeNull();
  expect(complexityFault(listOf(300_000, '1'))).toBeNull();
});

test.each([
  ['{"a": [1], "tokens": [1, 2, 3, 4]}', 'tokens'],
  ['{"tokens": [1, 2, 3, 4]}', 'tokens'],
  [
    '{"json_schema": {"enum": [1, 2, 3, 4]}, "tools": [[1, 2, 3, 4]], "allowed_token_ids": [1, 2, 3, 4]}',
    null,
  ],
  ['{"a": "b", "prompt": [[1], {"x": 1}, [1, 2, 3, 4]]}', 'prompt'],
  ['{"a": ["b", "c", "d", "e"], "b": [{}, {}, {}, {}]}', null],
  ['{"a": [[1, 2, 3], [4, 5, 6]], "b": [7, 8, 9], "c": 1}', null],
])('names the field with a list of more than three numbers: %s', (text, field) => {
  expect(complexityFault(text, 3)?.field ?? null).toBe(field);
});

test('ignores brackets and commas in strings', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const noisy = text + '[{,\\"'.repeat(20_001);
      expect(complexityFault(JSON.stringify({ [noisy]: noisy }), 2)).toBeNull();
    }),
    { numRuns: 20 },
  );
});

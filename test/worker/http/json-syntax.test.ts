import fc from 'fast-check';
import { expect, test } from 'vitest';
import { describeSyntaxError, syntaxErrorIndex } from '../../../worker/http/json-syntax.ts';
import { runs } from '../../support/random.ts';

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** JSON with one part replaced, which is sometimes still valid. */
const almostJson = fc
  .tuple(
    fc.json(),
    fc.nat(),
    fc.nat(3),
    fc.constantFrom('', ',', ']', '}', '"', '\\', '0', '-', ':', '\n', 'e'),
  )
  .map(([text, at, removed, added]) => {
    const index = at % (text.length + 1);
    return text.slice(0, index) + added + text.slice(index + removed);
  });

test('reports an error exactly where JSON.parse fails', () => {
  fc.assert(
    fc.property(fc.oneof(almostJson, fc.string()), (text) => {
      const index = syntaxErrorIndex(text);
      expect(index === null).toBe(parses(text));
      // Everything before the error can be the start of valid JSON.
      if (index !== null) expect(syntaxErrorIndex(text.slice(0, index)) ?? index).toBe(index);
    }),
    { numRuns: runs(2_000) },
  );
});

test.each([
  ['{"a":1,}', 'there is a syntax error at line 1, column 8'],
  ['{\n  "a": \'b\'\n}', 'there is a syntax error at line 2, column 8'],
  ['{"a":"b', 'the text ends too early at line 1, column 8'],
  ['{} {}', 'there is a syntax error at line 1, column 4'],
])('describes the error in %j', (text, message) => {
  expect(describeSyntaxError(text)).toBe(message);
});

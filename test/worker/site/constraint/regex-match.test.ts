import { expect, test } from 'vitest';
import { matchesWhole } from '../../../../worker/site/constraint/regex-match.ts';

test.each([
  ['a|bc', 'bc', true],
  ['a|bc', 'abc', false],
  ['a', 'a\n', false],
  ['[', 'a', null],
])('%s against %j: %s', (source, text, expected) => {
  expect(matchesWhole(source, text)).toBe(expected);
});

import { expect, test } from 'vitest';
import { hexBytes, isPartial, tokenBytes } from '../../../../worker/site/api/token-bytes.ts';

test.each([
  [' the', '20 74 68 65', false],
  ['é', 'c3 a9', false],
  ['bytes:\\xe2\\x82', 'e2 82', true],
  // Not what the API writes for bytes, so it is text.
  ['bytes:', '62 79 74 65 73 3a', false],
  ['', '', false],
])('the token %j has the bytes %s', (name, bytes, partial) => {
  expect(hexBytes(tokenBytes(name))).toBe(bytes);
  expect(isPartial(name)).toBe(partial);
});

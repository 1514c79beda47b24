import { expect, test } from 'vitest';
import { spoken } from '../../../../worker/site/tokens/spoken-token.ts';

test.each([
  [' king', 'king, 50.0 %'],
  ['king', 'king, 50.0 %'],
  [' ', 'space, 50.0 %'],
  ['\n\n', 'line break line break, 50.0 %'],
  ['  a', 'space space a, 50.0 %'],
  ['\u00a0', 'no-break space, 50.0 %'],
  ['\u200b', 'U+200B, 50.0 %'],
  ['bytes:\\xe2\\x82', 'bytes e2 82, 50.0 %'],
])('the token %j is spoken as "%s"', (name, text) => {
  expect(spoken({ name, logprob: Math.log(0.5) })).toBe(text);
});

import { expect, test } from 'vitest';
import { jsonError } from '../../../../worker/site/constraint/check-constraint.ts';

const SOURCE = '{\n  "type": x\n}';

test.each([
  [
    'Expected property name in JSON at position 12 (line 2 column 11)',
    'Expected property name at line 2, column 11',
  ],
  ['Unexpected token x in JSON at position 12', 'Unexpected token x at line 2, column 11'],
  [
    'JSON.parse: unexpected character at line 2 column 11 of the JSON data',
    'JSON.parse: unexpected character at line 2, column 11',
  ],
  ['Unexpected end of JSON input', 'Unexpected end of JSON input at line 3, column 2'],
  [
    `Unexpected token 'x', ..."  "type": x\n}" is not valid JSON`,
    `Unexpected token 'x', ..."  "type": x\n}" is not valid JSON at line 2, column 11`,
  ],
  ['JSON Parse error: Unexpected identifier "x"', 'JSON Parse error: Unexpected identifier "x"'],
])('the message of a browser, %j, names its place once, or none', (message, shown) => {
  expect(jsonError(SOURCE, message)).toBe(shown);
});

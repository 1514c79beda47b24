import { expect, test } from 'vitest';
import { keyFromFragment } from '../../../../worker/site/store/api-key.ts';

test.each([
  ['#key=sk-abc', 'sk-abc'],
  ['#/key=sk-abc', 'sk-abc'],
  ['#/tree#key=sk-a%2Bc', 'sk-a+c'],
  ['#/tree', null],
  ['#key=%', null],
  ['#/tree#key=sk-%e4', null],
  ['', null],
])('the fragment %j has the key %j', (hash, key) => {
  expect(keyFromFragment(hash)).toBe(key);
});

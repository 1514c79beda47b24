import { expect, test } from 'vitest';
import { linkOf } from '../../../../worker/site/store/page-link.ts';

test.each([
  ['#code=a-b_c', { kind: 'code', value: 'a-b_c' }],
  ['#/tree#code=a', { kind: 'code', value: 'a' }],
  ['#key=sk-abc', { kind: 'key', value: 'sk-abc' }],
  ['#/key=sk-abc', { kind: 'key', value: 'sk-abc' }],
  ['#/tree#key=sk-a%2Bc', { kind: 'key', value: 'sk-a+c' }],
  ['#/tree', null],
  ['#key=%', null],
  ['#/tree#key=sk-%e4', null],
  ['', null],
])('the fragment %j brings %j', (hash, link) => {
  expect(linkOf(hash)).toEqual(link);
});

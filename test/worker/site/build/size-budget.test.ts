import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { firstLoadBytes } from '../../../../worker/site/build/size-budget.ts';

const size = (code: string) => gzipSync(code).byteLength;

test('counts an entry and what it imports, once, and no lazy file', () => {
  const chunk = (code: string, isEntry: boolean, ...imports: string[]) => ({ code, isEntry, imports });
  const chunks = new Map([
    ['main.js', chunk('main()', true, 'a.js', 'b.js')],
    ['a.js', chunk('a()', false, 'b.js')],
    ['b.js', chunk('b()', false)],
    ['lazy.js', chunk('lazy()', false, 'b.js')],
  ]);
  expect([...firstLoadBytes(chunks)]).toEqual([['main.js', size('main()') + size('a()') + size('b()')]]);
});

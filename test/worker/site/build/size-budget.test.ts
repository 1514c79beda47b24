import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { firstLoadBytes, oversized } from '../../../../worker/site/build/size-budget.ts';
import { randomFrom } from '../../../support/random.ts';

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

test('names files that are too large when compressed', () => {
  const next = randomFrom(1);
  const noise = Array.from({ length: 4_000 }, () => Math.floor(next() * 36).toString(36)).join('');
  const chunks = new Map([
    ['large.js', { code: noise }],
    ['repeated.js', { code: 'a'.repeat(100_000) }],
  ]);
  expect(oversized(chunks, 1_024)).toEqual([expect.stringMatching(/^large\.js: \d\.\d KB$/)]);
});

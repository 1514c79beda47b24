import { expect, it } from 'vitest';
import { MaskCache, type TokenMask } from '../../../origin/grammar/runtime/mask-cache.ts';
import { buildTokenTrie } from '../../../origin/grammar/runtime/token-trie.ts';
import { TrieWalk } from '../../../origin/grammar/runtime/trie-walk.ts';
import { smallVocabulary } from '../../support/grammar/vocabularies.ts';

const walk = new TrieWalk(buildTokenTrie(smallVocabulary(), []));
const KIB = 1024;
const maskOf = (bytes: number): TokenMask => ({ mask: new Uint32Array(bytes / 4), returns: null });
const returningAt = (nodes: number): TokenMask => ({
  mask: new Uint32Array(1),
  returns: [{ namespace: 1, walk, nodes: Array<number>(nodes).fill(0) }],
});

it.each([
  ['masks', () => maskOf(KIB)],
  ['return points', () => returningAt(KIB / 8)],
])('bounds the memory, including that of %s', (_, make) => {
  const cache = new MaskCache(100 * KIB);
  for (let state = 0; state < 1000; state++) cache.set(1, state, make());
  expect(cache.size).toBeGreaterThan(90);
  expect(cache.size).toBeLessThanOrEqual(100);
});

it('evicts the least recently used mask first', () => {
  const cache = new MaskCache(20 * KIB);
  for (let state = 0; state < 20; state++) cache.set(1, state, maskOf(KIB));
  cache.get(1, 0);
  cache.set(1, 20, maskOf(KIB));
  expect(cache.get(1, 0)).toBeDefined();
  expect(cache.get(1, 1)).toBeUndefined();
});

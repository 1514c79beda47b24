import type { TokenBytes } from '../../tokenizer/token-bytes.ts';
import { MaskCache } from './mask-cache.ts';
import { buildTokenTrie, maskLengthOf, sortedTokens } from './token-trie.ts';
import { TrieWalk } from './trie-walk.ts';

/** The tokens of more than so many bytes: what is left to walk where all shorter ones are known. */
export interface LengthTier {
  readonly longerThan: number;
  readonly walk: TrieWalk;
  /** Bits of its tokens. */
  readonly mask: Uint32Array;
}

/** The first tier has all tokens. Usual tokens have up to ten bytes, the longest are runs of one character. */
const TIER_LENGTHS = [0, 4, 8, 16, 40];

function lengthTiers(tokens: TokenBytes): readonly LengthTier[] {
  const entries = sortedTokens(tokens);
  return TIER_LENGTHS.map((longerThan) => {
    const members = entries.filter(({ bytes }) => bytes.length > longerThan);
    const mask = new Uint32Array(maskLengthOf(tokens));
    for (const { id } of members) mask[id >>> 5]! |= 1 << (id & 31);
    return { longerThan, walk: new TrieWalk(buildTokenTrie(tokens, members)), mask };
  });
}

const DEFAULT_CACHE_BYTES = 64 * 2 ** 20;

/** What grammars need of a vocabulary; built once per model and thread (half a second for 150,000 tokens). */
export class GrammarVocabulary {
  readonly tokens: TokenBytes;
  /** Words of a mask. */
  readonly maskLength: number;
  /** Bytes of the longest token. */
  readonly maxTokenBytes: number;
  /** By length of the tokens left out; the first one has all. */
  readonly tiers: readonly LengthTier[];
  readonly masks: MaskCache;

  /** `cacheBytes` bounds the masks kept for all grammars together. */
  constructor(tokens: TokenBytes, cacheBytes: number = DEFAULT_CACHE_BYTES) {
    this.tokens = tokens;
    this.maskLength = maskLengthOf(tokens);
    this.tiers = lengthTiers(tokens);
    this.maxTokenBytes = this.tiers[0]!.walk.maxTokenBytes;
    this.masks = new MaskCache(cacheBytes);
  }
}

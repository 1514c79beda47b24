import type { TokenBytes } from '../../tokenizer/token-bytes.ts';
import { MaskCache } from './mask-cache.ts';
import { MaskWalk } from './mask-walk.ts';
import { buildTokenTrie, maskLengthOf } from './token-trie.ts';

const DEFAULT_CACHE_BYTES = 64 * 2 ** 20;

/** Tokens of more bytes than this are long: few, and walked apart where the others are known. */
export const SHORT_BYTES = 16;

/** What grammars need of a vocabulary; built once per model and thread (0.3 s for 150,000 tokens). */
export class GrammarVocabulary {
  readonly tokens: TokenBytes;
  /** Words of a mask. */
  readonly maskLength: number;
  readonly walk: MaskWalk;
  /** Walks the long tokens only. */
  readonly longWalk: MaskWalk;
  /** Bits of the long tokens. */
  readonly longTokens: Uint32Array;
  readonly masks: MaskCache;

  /** `cacheBytes` bounds the masks kept for all grammars together. */
  constructor(tokens: TokenBytes, cacheBytes: number = DEFAULT_CACHE_BYTES) {
    this.tokens = tokens;
    this.maskLength = maskLengthOf(tokens);
    this.walk = new MaskWalk(buildTokenTrie(tokens));
    this.longWalk = new MaskWalk(buildTokenTrie(tokens, SHORT_BYTES));
    this.longTokens = new Uint32Array(this.maskLength);
    for (let id = 0; id < tokens.vocabularySize; id++) {
      const isLong = tokens.offsets[id + 1]! - tokens.offsets[id]! > SHORT_BYTES;
      if (isLong) this.longTokens[id >>> 5]! |= 1 << (id & 31);
    }
    this.masks = new MaskCache(Math.max(16, Math.floor(cacheBytes / (4 * this.maskLength))));
  }
}

import type { TokenBytes } from '../../tokenizer/token-bytes.ts';
import { MaskCache } from './mask-cache.ts';
import { MaskWalk } from './mask-walk.ts';
import { buildTokenTrie } from './token-trie.ts';

const DEFAULT_CACHE_BYTES = 64 * 2 ** 20;

/** What grammars need of a vocabulary; built once per model and thread (0.3 s for 150,000 tokens). */
export class GrammarVocabulary {
  readonly tokens: TokenBytes;
  /** Words of a mask. */
  readonly maskLength: number;
  readonly walk: MaskWalk;
  readonly masks: MaskCache;

  /** `cacheBytes` bounds the masks kept for all grammars together. */
  constructor(tokens: TokenBytes, cacheBytes: number = DEFAULT_CACHE_BYTES) {
    this.tokens = tokens;
    this.maskLength = Math.ceil(tokens.vocabularySize / 32);
    this.walk = new MaskWalk(buildTokenTrie(tokens));
    this.masks = new MaskCache(Math.max(16, Math.floor(cacheBytes / (4 * this.maskLength))));
  }
}

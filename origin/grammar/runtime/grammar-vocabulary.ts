import type { TokenBytes } from '../../tokenizer/token-bytes.ts';
import { MaskCache } from './mask-cache.ts';
import { type TokenGrade, tokenGrades } from './token-grade.ts';
import { maskLengthOf } from './token-trie.ts';

const DEFAULT_CACHE_BYTES = 64 * 2 ** 20;

/** What grammars need of a vocabulary; built once per model and thread (half a second for 150,000 tokens). */
export class GrammarVocabulary {
  readonly tokens: TokenBytes;
  /** Words of a mask. */
  readonly maskLength: number;
  /** Bytes of the longest token. */
  readonly longest: number;
  /** By length of the tokens left out; the first one has all. */
  readonly grades: readonly TokenGrade[];
  readonly masks: MaskCache;

  /** `cacheBytes` bounds the masks kept for all grammars together. */
  constructor(tokens: TokenBytes, cacheBytes: number = DEFAULT_CACHE_BYTES) {
    this.tokens = tokens;
    this.maskLength = maskLengthOf(tokens);
    this.grades = tokenGrades(tokens);
    this.longest = this.grades[0]!.walk.longest;
    this.masks = new MaskCache(cacheBytes);
  }
}

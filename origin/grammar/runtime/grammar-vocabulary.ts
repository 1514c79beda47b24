import type { TokenBytes } from '../../tokenizer/token-bytes.ts';
import { MaskCache } from './mask-cache.ts';
import { buildTokenTrie, maskLengthOf, sortedEntries } from './token-trie.ts';
import { MaskWalk } from './trie-walk.ts';

/** The tokens of more than so many bytes: what is left to walk where all shorter ones are known. */
export interface TokenGrade {
  readonly longerThan: number;
  readonly walk: MaskWalk;
  /** Bits of its tokens. */
  readonly bits: Uint32Array;
}

/** The first grade has all tokens. Usual tokens have up to ten bytes, the longest are runs of one character. */
const GRADES = [0, 4, 8, 16, 40];

export function tokenGrades(tokens: TokenBytes): readonly TokenGrade[] {
  const entries = sortedEntries(tokens);
  return GRADES.map((longerThan) => {
    const members = entries.filter(({ bytes }) => bytes.length > longerThan);
    const bits = new Uint32Array(maskLengthOf(tokens));
    for (const { id } of members) bits[id >>> 5]! |= 1 << (id & 31);
    return { longerThan, walk: new MaskWalk(buildTokenTrie(tokens, members)), bits };
  });
}

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

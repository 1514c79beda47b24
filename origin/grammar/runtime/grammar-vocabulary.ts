import type { TokenBytes } from '../automaton/token-bytes.ts';
import { type Program, refersToTokens } from '../program/program.ts';
import { MaskCache } from './mask-cache.ts';
import { COUNTED_BYTES, isPlain } from './plain-text.ts';
import { TableMemory } from './table-memory.ts';
import { buildTokenTrie, maskLengthOf, sortedTokens, type TokenEntry } from './token-trie.ts';
import { TrieWalk } from './trie-walk.ts';

/**
 * The tokens of which a path has more than `longerThan` bytes. If the mask of shorter tokens is known, only
 * these are walked.
 */
interface LengthTier {
  readonly longerThan: number;
  readonly walk: TrieWalk;
  /** The tokens of the tier. */
  readonly mask: Uint32Array;
}

/** The first tier has all tokens. Most tokens have up to 10 bytes. */
const TIER_LENGTHS = [0, 4, 8, 16, 40];

function lengthTiers(tokens: TokenBytes, entries: readonly TokenEntry[]): readonly LengthTier[] {
  const longest = new Uint32Array(tokens.vocabularySize);
  for (const { id, bytes } of entries) longest[id] = Math.max(longest[id]!, bytes.length);
  return TIER_LENGTHS.map((longerThan) => {
    const members = entries.filter(({ id }) => longest[id]! > longerThan);
    const mask = new Uint32Array(maskLengthOf(tokens));
    for (const { id } of members) mask[id >>> 5]! |= 1 << (id & 31);
    return { longerThan, walk: new TrieWalk(buildTokenTrie(tokens, members)), mask };
  });
}

/**
 * The tokens of plain text of at most `maxBytes` bytes. If a state allows all of them, only the others are
 * walked.
 */
export interface PlainSlice {
  readonly maxBytes: number;
  readonly mask: Uint32Array;
  /** Walks the other tokens. */
  readonly others: TrieWalk;
}

/** The first slice has all plain tokens. A counted string allows those of the second. */
const SLICE_LENGTHS = [Number.POSITIVE_INFINITY, COUNTED_BYTES];

function plainSlices(tokens: TokenBytes, entries: readonly TokenEntry[]): readonly PlainSlice[] {
  const plain = new Set(entries.filter(({ bytes }) => isPlain(bytes)));
  return SLICE_LENGTHS.map((maxBytes) => {
    const isMember = (entry: TokenEntry) => plain.has(entry) && entry.bytes.length <= maxBytes;
    const mask = new Uint32Array(maskLengthOf(tokens));
    for (const { id } of entries.filter(isMember)) mask[id >>> 5]! |= 1 << (id & 31);
    const others = entries.filter((entry) => !isMember(entry));
    return { maxBytes, mask, others: new TrieWalk(buildTokenTrie(tokens, others)) };
  });
}

const DEFAULT_CACHE_BYTES = 64 * 2 ** 20;
/**
 * Those that two sequences work in are never dropped. In the worst case, these are two full tables and two
 * copies, of up to 152 MiB each.
 */
const DEFAULT_TABLE_BYTES = 512 * 2 ** 20;

/**
 * The token tries and the mask cache of a vocabulary. Built once per model and thread, in 0.5 s for 150,000
 * tokens.
 */
export class GrammarVocabulary {
  readonly tokens: TokenBytes;
  /** Number of 32-bit words of a mask. */
  readonly maskLength: number;
  readonly masks: MaskCache;
  /** The parser states of all grammars and sequences. */
  readonly tables: TableMemory;
  readonly #textTiers: readonly LengthTier[];
  readonly #plainSlices: readonly PlainSlice[];
  #referenceTiers: readonly LengthTier[] | null = null;

  /**
   * @param cacheBytes maximum memory of the cached masks of all grammars
   * @param tableBytes maximum memory of the parser states of all grammars
   */
  constructor(
    tokens: TokenBytes,
    cacheBytes: number = DEFAULT_CACHE_BYTES,
    tableBytes: number = DEFAULT_TABLE_BYTES,
  ) {
    this.tokens = tokens;
    this.maskLength = maskLengthOf(tokens);
    const entries = sortedTokens(tokens);
    this.#textTiers = lengthTiers(tokens, entries);
    this.#plainSlices = plainSlices(tokens, entries);
    this.masks = new MaskCache(cacheBytes);
    this.tables = new TableMemory(tableBytes);
  }

  /** Returns the largest slice of plain tokens of at most `bytes` bytes; null if there is none. */
  plainSlice(program: Program, bytes: number): PlainSlice | null {
    if (refersToTokens(program)) return null;
    return this.#plainSlices.find(({ maxBytes }) => maxBytes <= bytes) ?? null;
  }

  /**
   * In ascending order of `longerThan`; the first tier has all tokens. Those for references are built on
   * first use.
   */
  tiersFor(program: Program): readonly LengthTier[] {
    if (!refersToTokens(program)) return this.#textTiers;
    return (this.#referenceTiers ??= lengthTiers(this.tokens, sortedTokens(this.tokens, true)));
  }
}

import { bytesOf, type TokenBytes } from '../automaton/token-bytes.ts';
import { pathsOfToken } from '../automaton/token-path.ts';

/**
 * The tokens of a vocabulary as a trie in depth-first order, so that a subtree is a range of nodes. The root
 * has no node; node n stands for the bytes on its path. Special tokens and tokens without bytes are left out.
 */
export interface TokenTrie {
  /** Per node: last byte in bits 0 … 7, number of bytes before it above. */
  readonly nodes: Int32Array;
  /** Per node: first node after its subtree. */
  readonly subtreeEnds: Int32Array;
  /** Per node: how many earlier nodes end in a quote, and how many in a bracket or brace. */
  readonly quotes: Int32Array;
  readonly brackets: Int32Array;
  /** Per node: its token; for none or several, a bit beyond the vocabulary's mask words. */
  readonly tokens: Int32Array;
  readonly vocabularySize: number;
  /** Groups of tokens with equal bytes. Group g has bit 32 × mask words + 1 + g. */
  readonly duplicates: readonly (readonly number[])[];
  /** Bytes of the longest token. */
  readonly maxTokenBytes: number;
}

/** Number of 32-bit words of a mask. */
export function maskLengthOf({ vocabularySize }: { readonly vocabularySize: number }): number {
  return Math.ceil(vocabularySize / 32);
}

/** @param entries sorted by bytes */
export function buildTokenTrie(table: TokenBytes, entries: readonly TokenEntry[]): TokenTrie {
  const total = entries.reduce((sum, entry) => sum + entry.bytes.length, 0);
  const nodes = new Int32Array(total);
  const subtreeEnds = new Int32Array(total);
  const quotes = new Int32Array(total + 1);
  const brackets = new Int32Array(total + 1);
  const none = 32 * maskLengthOf(table);
  const tokens = new Int32Array(total).fill(none);
  const duplicates: number[][] = [];
  const path: number[] = [];
  let count = 0;
  let previous = '';
  for (const { bytes, id } of entries) {
    const common = commonPrefix(previous, bytes);
    while (path.length > common) subtreeEnds[path.pop()!] = count;
    for (let i = common; i < bytes.length; i++) {
      nodes[count] = bytes.charCodeAt(i) | (i << 8);
      quotes[count + 1] = quotes[count]! + (bytes[i] === '"' ? 1 : 0);
      brackets[count + 1] = brackets[count]! + ('[]{}'.includes(bytes[i]!) ? 1 : 0);
      path.push(count++);
    }
    const node = path.at(-1)!;
    const first = tokens[node]!;
    if (first === none) tokens[node] = id;
    else if (first > none) duplicates[first - none - 1]!.push(id);
    else tokens[node] = none + duplicates.push([first, id]);
    previous = bytes;
  }
  while (path.length > 0) subtreeEnds[path.pop()!] = count;
  return {
    nodes: nodes.slice(0, count),
    subtreeEnds: subtreeEnds.slice(0, count),
    quotes: quotes.slice(0, count + 1),
    brackets: brackets.slice(0, count + 1),
    tokens: tokens.slice(0, count),
    vocabularySize: table.vocabularySize,
    duplicates,
    maxTokenBytes: entries.reduce((max, { bytes }) => Math.max(max, bytes.length), 0),
  };
}

export interface TokenEntry {
  /** One code unit per byte, because strings sort and compare fast. */
  readonly bytes: string;
  readonly id: number;
}

/**
 * All tokens that have text, sorted by bytes. With `references`, each token by all paths that a grammar may
 * refer to.
 */
export function sortedTokens(tokens: TokenBytes, references = false): TokenEntry[] {
  const entries: TokenEntry[] = [];
  for (let id = 0; id < tokens.vocabularySize; id++) {
    const text = bytesOf(tokens, id);
    const isText = tokens.special[id] === 0 && text.length > 0;
    const paths = references ? pathsOfToken(tokens, id) : isText ? [text] : [];
    for (const bytes of paths) entries.push({ bytes: String.fromCharCode(...bytes), id });
  }
  return entries.sort((a, b) => (a.bytes < b.bytes ? -1 : a.bytes > b.bytes ? 1 : a.id - b.id));
}

function commonPrefix(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  let i = 0;
  while (i < length && a.charCodeAt(i) === b.charCodeAt(i)) i++;
  return i;
}

import { bytesOf, type TokenBytes } from '../../tokenizer/token-bytes.ts';

/**
 * The byte strings of a vocabulary as one tree in depth-first order, so that a subtree is a range of nodes. The root
 * has no node; node n stands for the bytes on the path to it. Special tokens and tokens without bytes are left out.
 */
export interface TokenTrie {
  readonly vocabularySize: number;
  /** Last byte of each node. */
  readonly byte: Uint8Array;
  /** Number of bytes before the last one. */
  readonly depth: Uint16Array;
  /** First node after the node's subtree. */
  readonly end: Int32Array;
  /** Token spelled by the node; −1 where none ends. */
  readonly token: Int32Array;
  /** Next token with the very same bytes; −1 = none. By token id. */
  readonly twin: Int32Array;
  readonly maxDepth: number;
}

export function buildTokenTrie(tokens: TokenBytes): TokenTrie {
  const entries = sortedEntries(tokens);
  const total = entries.reduce((sum, entry) => sum + entry.bytes.length, 0);
  const byte = new Uint8Array(total);
  const depth = new Uint16Array(total);
  const end = new Int32Array(total);
  const token = new Int32Array(total).fill(-1);
  const twin = new Int32Array(tokens.vocabularySize).fill(-1);
  const path: number[] = [];
  let count = 0;
  let previous = '';
  for (const { bytes, id } of entries) {
    const common = commonPrefix(previous, bytes);
    while (path.length > common) end[path.pop()!] = count;
    for (let i = common; i < bytes.length; i++) {
      byte[count] = bytes.charCodeAt(i);
      depth[count] = i;
      path.push(count++);
    }
    const node = path.at(-1)!;
    twin[id] = token[node]!;
    token[node] = id;
    previous = bytes;
  }
  while (path.length > 0) end[path.pop()!] = count;
  return {
    vocabularySize: tokens.vocabularySize,
    byte: byte.slice(0, count),
    depth: depth.slice(0, count),
    end: end.slice(0, count),
    token: token.slice(0, count),
    twin,
    maxDepth: depth.reduce((max, value) => Math.max(max, value), 0),
  };
}

interface Entry {
  /** One code unit per byte: strings of that kind sort and compare fast. */
  readonly bytes: string;
  readonly id: number;
}

function sortedEntries(tokens: TokenBytes): Entry[] {
  const entries: Entry[] = [];
  for (let id = 0; id < tokens.vocabularySize; id++) {
    if (tokens.special[id] === 1) continue;
    const bytes = bytesOf(tokens, id);
    if (bytes.length > 0) entries.push({ bytes: String.fromCharCode(...bytes), id });
  }
  return entries.sort((a, b) => (a.bytes < b.bytes ? -1 : a.bytes > b.bytes ? 1 : b.id - a.id));
}

function commonPrefix(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  let i = 0;
  while (i < length && a.charCodeAt(i) === b.charCodeAt(i)) i++;
  return i;
}

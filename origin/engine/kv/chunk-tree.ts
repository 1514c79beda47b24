import { unitsOf } from '@continuo/shared/binary-text.ts';
import type { ChunkMemory } from './prefix-memory.ts';
import type { StoredChunk } from './stored-chunk.ts';

/** A stored chunk of a prompt. Only whole chunks have successors. */
export interface ChunkNode extends StoredChunk {
  /** The chunk before it; null for the first one of a prompt. */
  readonly before: ChunkNode | null;
  /** Its place among the successors of that chunk. */
  readonly key: string;
  readonly after: Map<string, ChunkNode>;
  /** In the second tier; empty if there is none. */
  readonly name: string;
  readonly memory: ChunkMemory;
  logits: Float32Array | null;
  state: Uint8Array | null;
  hasLogprobs: boolean;
  next: number;
  stored: boolean;
}

/**
 * The chunks of all prompts in a tree, and the order of their use. A use of a prompt, or a chunk added to it,
 * counts for all its chunks, the last one first. So a chunk is always older than the one before it, and the
 * oldest has no successor.
 */
export class ChunkTree {
  readonly #chunkLength: number;
  /** The first chunks of prompts. */
  readonly #first = new Map<string, ChunkNode>();
  /** All chunks, least recently used first. */
  readonly #recency = new Set<ChunkNode>();

  /** @param chunkLength positions of a whole chunk */
  constructor(chunkLength: number) {
    this.#chunkLength = chunkLength;
  }

  /** The least recently used chunk. */
  get oldest(): ChunkNode | null {
    const [oldest = null] = this.#recency;
    return oldest;
  }

  /** Returns the chunks at the start of a prompt that end up to `limit`. */
  find(namespace: string, tokens: Int32Array, limit: number): ChunkNode[] {
    const chunks: ChunkNode[] = [];
    for (let start = 0; start < limit; start += this.#chunkLength) {
      const end = Math.min(start + this.#chunkLength, tokens.length);
      const before = chunks.at(-1) ?? null;
      const chunk =
        end > limit ? null : this.next(before, keyOf(namespace, before, idsOf(tokens, start, end)));
      if (chunk === null) break;
      chunks.push(chunk);
    }
    return chunks;
  }

  /** Returns a successor of a chunk, or a first chunk if `before` is null. */
  next(before: ChunkNode | null, key: string): ChunkNode | null {
    return this.#successors(before).get(key) ?? null;
  }

  /** Adds a chunk after the one before it. To be used next. */
  add(content: Omit<ChunkNode, 'after' | 'stored'>): ChunkNode {
    const chunk = { ...content, after: new Map<string, ChunkNode>(), stored: true };
    this.#successors(chunk.before).set(chunk.key, chunk);
    return chunk;
  }

  /** Counts the chunks of a prompt as used. */
  use(chunks: readonly ChunkNode[]): void {
    for (const chunk of chunks.toReversed()) {
      this.#recency.delete(chunk);
      this.#recency.add(chunk);
    }
  }

  /** Removes a chunk with all that follow it. Returns these chunks. */
  remove(chunk: ChunkNode): readonly ChunkNode[] {
    this.#successors(chunk.before).delete(chunk.key);
    const removed = [chunk];
    for (const node of removed) {
      removed.push(...node.after.values());
      this.#recency.delete(node);
      node.stored = false;
    }
    return removed;
  }

  #successors(before: ChunkNode | null): Map<string, ChunkNode> {
    return before?.after ?? this.#first;
  }
}

/** A chunk's key among the successors of the one before: its ids; with the namespace if it is the first. */
export const keyOf = (namespace: string, before: ChunkNode | null, ids: string): string =>
  before === null ? `${namespace.length} ${namespace}${ids}` : ids;

/** The ids as text, a code unit for each half of an id: equal ids give equal texts. */
export const idsOf = (tokens: Int32Array, start: number, end: number): string =>
  unitsOf(new Uint8Array(tokens.buffer, tokens.byteOffset + 4 * start, 4 * (end - start)));

/** The positions that a state at a chunk's end saves beside the one before it. */
export function savedBy({ length, before }: ChunkNode): number {
  let saved = length;
  for (let node = before; node !== null && node.state === null; node = node.before) saved += node.length;
  return saved;
}

import { MAX_TOP_LOGPROBS } from '../../../shared/logprob.ts';
import type { KvBytes } from '../../model/model-runner.ts';
import { type ChunkScores, scoreBytes, TokenScores } from './token-scores.ts';

export interface PrefixStoreShape {
  /** Positions of a chunk. */
  readonly chunk: number;
  readonly kvBytes: KvBytes;
  readonly budgetBytes: number;
}

/** Counters since the start; `bytes` is the present size. */
export interface PrefixStoreStatus {
  readonly bytes: number;
  /** Prompts of at least one chunk of which a prefix was found. */
  readonly hits: number;
  /** Those of which none was. */
  readonly misses: number;
  readonly storedChunks: number;
  readonly restoredTokens: number;
  readonly evictedChunks: number;
}

/** What is stored of one chunk of a prompt. */
export interface StoredChunk extends ChunkScores {
  readonly kv: Uint8Array;
}

/** Memory for one chunk. */
export type ChunkMemory = Pick<StoredChunk, 'kv' | 'scores'>;

/** One chunk of a prompt, after the chunks on the way from the root. */
interface Node extends StoredChunk {
  readonly parent: Node | Root;
  readonly key: string;
  readonly children: Map<string, Node>;
  scored: boolean;
  next: number;
}

/** The beginning of every prompt in a namespace. */
interface Root extends Pick<Node, 'key' | 'children'> {
  readonly parent: null;
}

const NO_NODES: ReadonlySet<Node> = new Set();

/**
 * Keeps the KV of prompt chunks beyond the slots: a radix tree per namespace over the fixed grid of prefill chunks. The
 * bytes are those of the original prefill, so a restored prefix gives the same bits. If the logprobs of the prompt were
 * computed, the chunks keep them.
 *
 * The KV of suspended sequences is kept in the same memory, and evicts chunks.
 *
 * The least recently used chunk is evicted first. A use counts for the chunks before it, too, so the oldest chunk never has
 * a successor. Memory never exceeds the budget, because the memory of an evicted chunk is used again.
 */
export class PrefixStore {
  readonly #shape: PrefixStoreShape;
  readonly #roots = new Map<string, Root>();
  /** All chunks, least recently used first. */
  readonly #used = new Set<Node>();
  /** Memory that was given back. */
  readonly #unused: ChunkMemory[] = [];
  #lent = 0;
  readonly #counts = { hits: 0, misses: 0, storedChunks: 0, restoredTokens: 0, evictedChunks: 0 };

  constructor(shape: PrefixStoreShape) {
    this.#shape = shape;
  }

  get status(): PrefixStoreStatus {
    return { bytes: (this.#used.size + this.#lent) * storedChunkBytes(this.#shape), ...this.#counts };
  }

  /** Returns the stored chunks at the start of a prompt, within its first `limit` positions. Valid until the next `add`. */
  find(namespace: string, prompt: Int32Array, limit: number): readonly StoredChunk[] {
    const found = this.#find(namespace, prompt, limit);
    if (limit >= this.#shape.chunk) this.#counts[found.length > 0 ? 'hits' : 'misses']++;
    return found;
  }

  /** Writes stored chunks to a slot, from position `start` on. */
  restore(slot: number, start: number, chunks: readonly StoredChunk[]): void {
    const { chunk, kvBytes } = this.#shape;
    kvBytes.write(
      slot,
      start,
      chunks.map(({ kv }) => kv),
    );
    this.#counts.restoredTokens += chunks.length * chunk;
  }

  /**
   * Stores the chunk of a prompt that ends at `end` in a slot. Does nothing if a chunk before it is not stored, or if there
   * is no room beside the prompt's own chunks.
   * @param scores of the prompt's positions up to and including `end`; null if they were not computed
   */
  add(slot: number, namespace: string, prompt: Int32Array, end: number, scores: TokenScores | null): void {
    const { chunk, kvBytes } = this.#shape;
    const start = end - chunk;
    const path = this.#find(namespace, prompt, end);
    let node = path[start / chunk];
    if (node === undefined) {
      const memory = path.length * chunk === start ? this.#freeMemory(new Set(path)) : null;
      if (memory === null) return;
      kvBytes.read(slot, start, end, memory.kv);
      const parent = path.at(-1) ?? this.#root(namespace);
      const key = keyOf(prompt, start, end);
      node = { ...memory, parent, key, children: new Map(), scored: false, next: -1 };
      parent.children.set(node.key, node);
      this.#counts.storedChunks++;
      this.#use([...path, node]);
    }
    if (scores === null) return;
    const next = prompt[end] ?? -1;
    if (node.scored && next < 0) return;
    node.scores.copy(scores, start, next < 0 ? end : end + 1, 0);
    node.scored = true;
    node.next = next;
  }

  /** Chunks of memory that hold the KV of suspended sequences. */
  get lent(): number {
    return this.#lent;
  }

  /**
   * Copies positions [0, length) of a slot to memory that is not evicted.
   * @returns null if there is no room or memory
   * @throws if the KV cannot be read
   */
  save(slot: number, length: number): readonly ChunkMemory[] | null {
    const { chunk, kvBytes } = this.#shape;
    const lent = this.#lend(Math.ceil(length / chunk));
    if (lent === null) return null;
    try {
      for (const [index, { kv }] of lent.entries()) {
        const start = index * chunk;
        const end = Math.min(length, start + chunk);
        kvBytes.read(slot, start, end, kv.subarray(0, (end - start) * kvBytes.positionBytes));
      }
    } catch (error) {
      this.free(lent);
      throw error;
    }
    return lent;
  }

  /** Writes saved KV to a slot and gives the memory back. @throws if the KV cannot be written */
  writeBack(slot: number, saved: readonly ChunkMemory[], length: number): void {
    const { chunk, kvBytes } = this.#shape;
    const bytesAfter = (index: number) => (length - index * chunk) * kvBytes.positionBytes;
    try {
      kvBytes.write(
        slot,
        0,
        saved.map(({ kv }, index) => kv.subarray(0, bytesAfter(index))),
      );
    } finally {
      this.free(saved);
    }
  }

  /** Gives saved memory back. */
  free(saved: readonly ChunkMemory[]): void {
    this.#lent -= saved.length;
    this.#unused.push(...saved);
  }

  #lend(count: number): ChunkMemory[] | null {
    if ((this.#lent + count) * storedChunkBytes(this.#shape) > this.#shape.budgetBytes) return null;
    const lent: ChunkMemory[] = [];
    while (lent.length < count) {
      const memory = this.#freeMemory(NO_NODES);
      if (memory === null) break;
      lent.push(memory);
      this.#lent++;
    }
    if (lent.length === count) return lent;
    this.free(lent);
    return null;
  }

  /** Removes a prompt whose KV cannot be trusted, and all prompts with the same first chunk. */
  drop(namespace: string, prompt: Int32Array): void {
    const [first] = this.#find(namespace, prompt, this.#shape.chunk);
    if (first !== undefined) this.#remove(first);
  }

  /** Returns the stored chunks at the start of a prompt and counts them as used. */
  #find(namespace: string, prompt: Int32Array, limit: number): Node[] {
    const { chunk } = this.#shape;
    const path: Node[] = [];
    let children = this.#roots.get(namespace)?.children;
    for (let end = chunk; children !== undefined && end <= limit; end += chunk) {
      const node = children.get(keyOf(prompt, end - chunk, end));
      if (node !== undefined) path.push(node);
      children = node?.children;
    }
    this.#use(path);
    return path;
  }

  #root(namespace: string): Root {
    const known = this.#roots.get(namespace);
    if (known !== undefined) return known;
    const root: Root = { parent: null, key: namespace, children: new Map() };
    this.#roots.set(namespace, root);
    return root;
  }

  /** Each chunk becomes more recent than its successors. */
  #use(path: readonly Node[]): void {
    for (const node of path.toReversed()) {
      this.#used.delete(node);
      this.#used.add(node);
    }
  }

  /** Returns new memory, or that of the oldest chunk if that is not one of `kept`. Null without room or memory. */
  #freeMemory(kept: ReadonlySet<Node>): ChunkMemory | null {
    const unused = this.#unused.pop();
    if (unused !== undefined) return unused;
    const needed = (this.#used.size + this.#lent + 1) * storedChunkBytes(this.#shape);
    if (needed <= this.#shape.budgetBytes) {
      const memory = allocate(this.#shape);
      if (memory !== null) return memory;
    }
    const [oldest] = this.#used;
    if (oldest === undefined || kept.has(oldest)) return null;
    this.#remove(oldest);
    this.#counts.evictedChunks++;
    return { kv: oldest.kv, scores: oldest.scores };
  }

  /** Removes a chunk with its successors. */
  #remove(node: Node): void {
    for (const successor of node.children.values()) this.#remove(successor);
    this.#used.delete(node);
    const { parent, key } = node;
    parent.children.delete(key);
    if (parent.parent === null && parent.children.size === 0) this.#roots.delete(parent.key);
  }
}

/** Returns the bytes that a chunk takes, with room for its scores. */
export const storedChunkBytes = ({ chunk, kvBytes }: Omit<PrefixStoreShape, 'budgetBytes'>): number =>
  chunk * kvBytes.positionBytes + (chunk + 1) * scoreBytes(MAX_TOP_LOGPROBS);

/** The ids as text: equal chunks have equal keys. */
const keyOf = (prompt: Int32Array, start: number, end: number): string =>
  Buffer.from(prompt.buffer, prompt.byteOffset + 4 * start, 4 * (end - start)).toString('latin1');

/** Returns null if the system has no memory left. */
function allocate({ chunk, kvBytes }: PrefixStoreShape): ChunkMemory | null {
  try {
    // The collector of V8 runs after every few MiB of other memory, which takes a tenth of a prefill.
    const memory = new SharedArrayBuffer(storedChunkBytes({ chunk, kvBytes }));
    const scores = new TokenScores(chunk + 1, MAX_TOP_LOGPROBS, memory);
    return { scores, kv: new Uint8Array(memory, (chunk + 1) * scoreBytes(MAX_TOP_LOGPROBS)) };
  } catch {
    return null;
  }
}

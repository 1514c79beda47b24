import type { KvBytes } from '../../model/model-runner.ts';
import {
  allocateChunk,
  allocateLogits,
  type ChunkMemory,
  MemoryPool,
  type PrefixStoreShape,
  prefixStoreRoom,
} from './prefix-memory.ts';
import type { PromptLogprobs } from './prompt-logprobs.ts';
import { type Linked, RecencyList } from './recency-list.ts';
import { SavedKv } from './saved-kv.ts';
import type { ChunkBackup, ChunkContent, StoredChunk } from './stored-chunk.ts';

/** Counters since the start; `bytes` is the present size. */
export interface PrefixStoreStatus {
  readonly bytes: number;
  /** Prompts of which a prefix was found. */
  readonly hits: number;
  /** Those of which none was. */
  readonly misses: number;
  readonly storedChunks: number;
  readonly restoredTokens: number;
  readonly evictedChunks: number;
}

/** A stored chunk of a prompt, after the chunks on the way from the root. Only whole chunks have children. */
interface ChunkNode extends StoredChunk, Linked<ChunkNode> {
  readonly parent: ChunkNode | Root;
  readonly key: string;
  /** In the second tier; empty if there is none. */
  readonly name: string;
  readonly children: Map<string, ChunkNode>;
  readonly memory: ChunkMemory;
  logits: Float32Array | null;
  hasLogprobs: boolean;
  next: number;
  /** False once it was evicted. */
  stored: boolean;
}

/** The beginning of every prompt in a namespace. */
interface Root extends Pick<ChunkNode, 'key' | 'name' | 'children'> {
  readonly parent: null;
}

/** A prompt and its stored chunks, in order. The chunks are valid until the next `add`. */
export interface StoredPrompt {
  readonly namespace: string;
  readonly tokens: Int32Array;
  readonly chunks: ChunkNode[];
}

/**
 * Keeps the KV of prompts beyond the slots: a radix tree per namespace over the chunks of a prefill. All of them are full
 * chunks, except the last one of a prompt. The bytes are those of the original prefill, so a restored prefix gives the same
 * bits. A prompt's last chunk is stored with its logits, so an equal prompt needs no run of the model. If the logprobs of the
 * prompt were computed, the chunks keep them.
 *
 * The least recently used chunk is evicted first. A use counts when a prompt begins, and for all its chunks. A chunk is always
 * older than the one before it, so the oldest has no successor. Memory never exceeds the budget.
 */
export class PrefixStore {
  readonly #chunkLength: number;
  readonly #kvBytes: KvBytes;
  readonly #room: ReturnType<typeof prefixStoreRoom>;
  readonly #chunkMemory: MemoryPool<ChunkMemory>;
  readonly #logits: MemoryPool<Float32Array>;
  /** KV of suspended sequences, in the same memory; it evicts chunks. */
  readonly saved: SavedKv;
  readonly #roots = new Map<string, Root>();
  readonly #recency = new RecencyList<ChunkNode>();
  /** Runs with logits, least recently used first. */
  readonly #withLogits = new Set<ChunkNode>();
  readonly #backup: ChunkBackup | null;
  readonly #counts = { hits: 0, misses: 0, storedChunks: 0, restoredTokens: 0, evictedChunks: 0 };

  constructor(shape: PrefixStoreShape, backup: ChunkBackup | null = null) {
    this.#backup = backup;
    this.#chunkLength = shape.chunk;
    this.#kvBytes = shape.kvBytes;
    this.#room = prefixStoreRoom(shape);
    this.#chunkMemory = new MemoryPool(this.#room.chunks, () => allocateChunk(shape));
    this.#logits = new MemoryPool(this.#room.logits, () => allocateLogits(shape));
    this.saved = new SavedKv(shape, this.#room.chunks, {
      take: () => this.#takeChunk(null),
      give: (memory) => this.#chunkMemory.give(memory),
    });
  }

  get status(): PrefixStoreStatus {
    const { chunkBytes, logitsBytes } = this.#room;
    return { bytes: this.#chunkMemory.used * chunkBytes + this.#logits.used * logitsBytes, ...this.#counts };
  }

  /** Chunks that fit into the budget. */
  get room(): number {
    return this.#room.chunks;
  }

  /** Finds the stored chunks at the start of a prompt, within its first `limit` positions, and counts them as used. */
  open(namespace: string, tokens: Int32Array, limit: number): StoredPrompt {
    const prompt = this.use(namespace, tokens, limit);
    const { chunks } = prompt;
    const last = chunks.at(-1);
    if (last !== undefined && this.#withLogits.delete(last)) this.#withLogits.add(last);
    if (limit > 0) this.#counts[chunks.length > 0 ? 'hits' : 'misses']++;
    return prompt;
  }

  /** As `open`, before the prompt begins. */
  use(namespace: string, tokens: Int32Array, limit: number): StoredPrompt {
    const chunks = this.#find(namespace, tokens, limit);
    for (const chunk of chunks.toReversed()) this.#recency.use(chunk);
    return { namespace, tokens, chunks };
  }

  /**
   * Adds a chunk of the second tier after the stored ones of a prompt.
   * @returns false if there is no room, or if a chunk before it is not stored any more
   */
  insert(prompt: StoredPrompt, content: ChunkContent): boolean {
    const start = prompt.chunks.length * this.#chunkLength;
    const end = Math.min(start + this.#chunkLength, prompt.tokens.length);
    const chunk = this.#append(prompt, start, end, (kv) => kv.set(content.kv));
    if (chunk === null) return false;
    if (content.logprobs !== null && !chunk.hasLogprobs) {
      chunk.logprobs.bytes.set(content.logprobs);
      chunk.hasLogprobs = true;
    }
    if (content.logits !== null && chunk.logits === null) this.#keepLogits(chunk, content.logits);
    return true;
  }

  /** Writes stored chunks to a slot, from position `start` on. */
  restore(slot: number, start: number, chunks: readonly StoredChunk[]): void {
    const parts = chunks.map(({ kv }) => kv);
    this.#kvBytes.write(slot, start, parts);
    this.#counts.restoredTokens += chunks.reduce((sum, { length }) => sum + length, 0);
  }

  /**
   * Stores the chunk of a prompt that ends at `end` in a slot. Does nothing if a chunk before it is not stored, or if there is no
   * room beside the prompt's own chunks.
   * @param logprobs of the prompt's positions up to and including `end`; null if they were not computed
   * @param logits of the chunk's last position; null if they were not computed
   */
  add(
    prompt: StoredPrompt,
    slot: number,
    end: number,
    logprobs: PromptLogprobs | null,
    logits: Float32Array | null,
  ): void {
    const index = Math.ceil(end / this.#chunkLength) - 1;
    const start = index * this.#chunkLength;
    const readKv = (kv: Uint8Array) => this.#kvBytes.read(slot, start, end, kv);
    const chunk = prompt.chunks[index] ?? this.#append(prompt, start, end, readKv);
    if (!chunk?.stored) return;
    if (logits !== null && chunk.logits === null) this.#keepLogits(chunk, logits);
    if (logprobs !== null) keepLogprobs(chunk, logprobs, end, prompt.tokens[end] ?? -1);
    this.#backup?.keep(chunk);
  }

  /** Removes a prompt whose KV cannot be trusted, and all prompts with the same first chunk. */
  drop(namespace: string, tokens: Int32Array): void {
    const end = Math.min(this.#chunkLength, tokens.length);
    const [first] = this.#find(namespace, tokens, end);
    if (first !== undefined) this.#remove(first);
    this.#backup?.drop(this.#backup.name(this.#backup.name(null, namespace), keyOf(tokens, 0, end)));
  }

  #find(namespace: string, tokens: Int32Array, limit: number): ChunkNode[] {
    const chunks: ChunkNode[] = [];
    let children = this.#roots.get(namespace)?.children;
    for (let start = 0; children !== undefined && start < limit; start += this.#chunkLength) {
      const end = Math.min(start + this.#chunkLength, tokens.length);
      const chunk = end <= limit ? children.get(keyOf(tokens, start, end)) : undefined;
      if (chunk !== undefined) chunks.push(chunk);
      children = chunk?.children;
    }
    return chunks;
  }

  /** Adds a chunk to the stored ones of a prompt. Returns null if it cannot be stored. */
  #append(
    { namespace, tokens, chunks }: StoredPrompt,
    start: number,
    end: number,
    fill: Fill,
  ): ChunkNode | null {
    const before = chunks.at(-1) ?? null;
    if (chunks.length * this.#chunkLength !== start || before?.stored === false) return null;
    const parent = before ?? this.#roots.get(namespace) ?? this.#newRoot(namespace);
    const key = keyOf(tokens, start, end);
    const chunk = parent.children.get(key) ?? this.#store(parent, key, end - start, fill);
    if (chunk !== null) chunks.push(chunk);
    return chunk;
  }

  #newRoot(key: string): Root {
    return { parent: null, key, name: this.#backup?.name(null, key) ?? '', children: new Map() };
  }

  #store(parent: ChunkNode | Root, key: string, length: number, fill: Fill): ChunkNode | null {
    const memory = this.#takeChunk(parent);
    if (memory === null) return null;
    const kv = memory.kv.subarray(0, length * this.#kvBytes.positionBytes);
    try {
      fill(kv);
    } catch (error) {
      this.#chunkMemory.give(memory);
      throw error;
    }
    const { logprobs } = memory;
    const name = this.#backup?.name(parent.name, key) ?? '';
    const place = { parent, key, name, children: new Map(), older: null, newer: null };
    const chunk: ChunkNode = {
      ...place,
      length,
      memory,
      kv,
      logprobs,
      hasLogprobs: false,
      next: -1,
      logits: null,
      stored: true,
    };
    if (parent.parent === null) this.#roots.set(parent.key, parent);
    parent.children.set(key, chunk);
    this.#recency.add(chunk, parent.parent === null ? null : parent);
    this.#counts.storedChunks++;
    return chunk;
  }

  #keepLogits(chunk: ChunkNode, logits: Float32Array): void {
    let memory = this.#logits.take();
    if (memory === null) {
      const [oldest] = this.#withLogits;
      if (oldest === undefined) return;
      this.#dropLogits(oldest);
      memory = this.#logits.take();
    }
    if (memory === null) return;
    memory.set(logits);
    chunk.logits = memory;
    this.#withLogits.add(chunk);
  }

  #dropLogits(chunk: ChunkNode): void {
    if (chunk.logits === null) return;
    this.#logits.give(chunk.logits);
    this.#withLogits.delete(chunk);
    chunk.logits = null;
  }

  /** Returns new memory, or that of the oldest chunk if it is not `kept`. Null without room or memory. */
  #takeChunk(kept: ChunkNode | Root | null): ChunkMemory | null {
    const memory = this.#chunkMemory.take();
    const { oldest } = this.#recency;
    if (memory !== null || oldest === null || oldest === kept) return memory;
    this.#remove(oldest);
    this.#counts.evictedChunks++;
    return this.#chunkMemory.take();
  }

  /** Removes a chunk with its successors. */
  #remove(chunk: ChunkNode): void {
    const { parent, key } = chunk;
    parent.children.delete(key);
    if (parent.parent === null && parent.children.size === 0) this.#roots.delete(parent.key);
    const removed = [chunk];
    for (const one of removed) {
      removed.push(...one.children.values());
      this.#dropLogits(one);
      this.#recency.remove(one);
      this.#chunkMemory.give(one.memory);
      one.stored = false;
    }
  }
}

type Fill = (kv: Uint8Array) => void;

/** Adds the logprobs of a chunk that ends at `end`, and that of the token after it, unless they are known. */
function keepLogprobs(chunk: ChunkNode, logprobs: PromptLogprobs, end: number, next: number): void {
  if (chunk.hasLogprobs && next < 0) return;
  chunk.logprobs.copy(logprobs, end - chunk.length, next < 0 ? end : end + 1, 0);
  chunk.hasLogprobs = true;
  chunk.next = next;
}

/** The ids as text: equal chunks have equal keys. */
export const keyOf = (tokens: Int32Array, start: number, end: number): string =>
  Buffer.from(tokens.buffer, tokens.byteOffset + 4 * start, 4 * (end - start)).toString('latin1');

import { unitsOf } from '@continuo/shared/binary-text.ts';
import type { KvBytes } from '../../model/model-runner.ts';
import { ExtraMemory } from './extra-memory.ts';
import {
  allocateChunk,
  allocateLogits,
  allocateState,
  type ChunkMemory,
  MemoryPool,
  type PrefixStoreShape,
  prefixStoreRoom,
} from './prefix-memory.ts';
import type { PromptLogprobs } from './prompt-logprobs.ts';
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

/** A stored chunk of a prompt. Only whole chunks have successors. */
interface ChunkNode extends StoredChunk {
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

/** A prompt and its stored chunks, in order. The chunks are valid until the next `add`. */
export interface StoredPrompt {
  readonly namespace: string;
  readonly tokens: Int32Array;
  readonly chunks: ChunkNode[];
}

/**
 * Keeps the KV of prompts beyond the slots: a tree of the chunks of their prefill. All of them are whole
 * chunks, except the last one of a prompt. The bytes are those of the original prefill, so a restored prefix
 * gives the same bits. A prompt's last chunk is stored with its logits, so an equal prompt needs no run of
 * the model. If the logprobs of the prompt were computed, the chunks keep them.
 *
 * The least recently used chunk is evicted first. A use of a prompt, or a chunk added to it, counts for all
 * its chunks, the last one first. So a chunk is always older than the one before it, and the oldest has no
 * successor. Memory never exceeds the budget.
 */
export class PrefixStore {
  readonly #chunkLength: number;
  readonly #kvBytes: KvBytes;
  readonly #room: ReturnType<typeof prefixStoreRoom>;
  readonly #chunkMemory: MemoryPool<ChunkMemory>;
  readonly #logits: ExtraMemory<'logits', Float32Array>;
  /** Of chunks, and of suspended sequences. */
  readonly states: ExtraMemory<'state', Uint8Array>;
  /** KV of suspended sequences, in the same memory; it evicts chunks. */
  readonly saved: SavedKv;
  /** The first chunks of prompts. */
  readonly #first = new Map<string, ChunkNode>();
  /** All chunks, least recently used first. */
  readonly #recency = new Set<ChunkNode>();
  readonly #backup: ChunkBackup | null;
  readonly #counts = { hits: 0, misses: 0, storedChunks: 0, restoredTokens: 0, evictedChunks: 0 };

  constructor(shape: PrefixStoreShape, backup: ChunkBackup | null = null) {
    this.#backup = backup;
    this.#chunkLength = shape.chunk;
    this.#kvBytes = shape.kvBytes;
    this.#room = prefixStoreRoom(shape);
    this.#chunkMemory = new MemoryPool(this.#room.chunks, () => allocateChunk(shape));
    this.#logits = new ExtraMemory('logits', new MemoryPool(this.#room.logits, () => allocateLogits(shape)));
    this.states = new ExtraMemory('state', new MemoryPool(this.#room.states, () => allocateState(shape)));
    this.saved = new SavedKv(shape, this.#room.chunks, {
      take: () => this.#takeChunk(null),
      give: (memory) => this.#chunkMemory.give(memory),
    });
  }

  get status(): PrefixStoreStatus {
    const { chunkBytes, logitsBytes, stateBytes } = this.#room;
    const bytes =
      this.#chunkMemory.used * chunkBytes + this.#logits.used * logitsBytes + this.states.used * stateBytes;
    return { bytes, ...this.#counts };
  }

  /** Chunks that fit into the budget. */
  get room(): number {
    return this.#room.chunks;
  }

  /** Finds the stored chunks at the start of a prompt up to `limit` and counts them as used. */
  open(namespace: string, tokens: Int32Array, limit: number): StoredPrompt {
    const prompt = this.use(namespace, tokens, limit);
    const { chunks } = prompt;
    this.#logits.touch(chunks.at(-1));
    this.states.touch(chunks.findLast(({ state }) => state !== null));
    if (limit > 0) this.#counts[chunks.length > 0 ? 'hits' : 'misses']++;
    return prompt;
  }

  /** As `open`, before the prompt begins. */
  use(namespace: string, tokens: Int32Array, limit: number): StoredPrompt {
    const chunks = this.#find(namespace, tokens, limit);
    this.#use(chunks);
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
    const { logits } = content;
    if (logits !== null) this.#logits.keep(chunk, (memory) => memory.set(logits));
    return true;
  }

  /** Writes stored chunks to a slot, from position `start` on. */
  restore(slot: number, start: number, chunks: readonly StoredChunk[]): void {
    const parts = chunks.map(({ kv }) => kv);
    this.#kvBytes.write(slot, start, parts);
    this.#counts.restoredTokens += chunks.reduce((sum, { length }) => sum + length, 0);
  }

  /**
   * Stores the chunk of a prompt that ends at `end` in a slot. Does nothing if a chunk before it is not
   * stored, or if there is no room beside the prompt's own chunks.
   * @param logprobs of the prompt's positions up to and including `end`; null if they were not computed
   * @param logits of the chunk's last position; null if they were not computed
   * @param readState fills memory with the slot's state at `end`; null if it does not have that
   */
  add(
    prompt: StoredPrompt,
    slot: number,
    end: number,
    logprobs: PromptLogprobs | null,
    logits: Float32Array | null,
    readState: ((state: Uint8Array) => void) | null = null,
  ): void {
    const index = Math.ceil(end / this.#chunkLength) - 1;
    const start = index * this.#chunkLength;
    const readKv = (kv: Uint8Array) => this.#kvBytes.read(slot, start, end, kv);
    const chunk = prompt.chunks[index] ?? this.#append(prompt, start, end, readKv);
    if (!chunk?.stored) return;
    if (logits !== null) this.#logits.keep(chunk, (memory) => memory.set(logits));
    if (readState !== null) this.states.keep(chunk, readState, savedBy(chunk));
    if (logprobs !== null) keepLogprobs(chunk, logprobs, end, prompt.tokens[end] ?? -1);
    this.#backup?.keep(chunk);
  }

  /** Removes a prompt whose KV cannot be trusted, and all prompts with the same first chunk. */
  drop(namespace: string, tokens: Int32Array): void {
    const end = Math.min(this.#chunkLength, tokens.length);
    const [first] = this.#find(namespace, tokens, end);
    if (first !== undefined) this.#remove(first);
    this.#backup?.drop(this.#backup.name(namespace, null, idsOf(tokens, 0, end)));
  }

  #find(namespace: string, tokens: Int32Array, limit: number): ChunkNode[] {
    const chunks: ChunkNode[] = [];
    for (let start = 0; start < limit; start += this.#chunkLength) {
      const end = Math.min(start + this.#chunkLength, tokens.length);
      const before = chunks.at(-1) ?? null;
      const key = keyOf(namespace, before, idsOf(tokens, start, end));
      const chunk = end > limit ? undefined : this.#successors(before).get(key);
      if (chunk === undefined) break;
      chunks.push(chunk);
    }
    return chunks;
  }

  #successors(before: ChunkNode | null): Map<string, ChunkNode> {
    return before?.after ?? this.#first;
  }

  #use(chunks: readonly ChunkNode[]): void {
    for (const chunk of chunks.toReversed()) {
      this.#recency.delete(chunk);
      this.#recency.add(chunk);
    }
  }

  /** Adds a chunk to the stored ones of a prompt. Returns null if it cannot be stored. */
  #append(
    { namespace, tokens, chunks }: StoredPrompt,
    start: number,
    end: number,
    fill: (kv: Uint8Array) => void,
  ): ChunkNode | null {
    const before = chunks.at(-1) ?? null;
    if (chunks.length * this.#chunkLength !== start || before?.stored === false) return null;
    const ids = idsOf(tokens, start, end);
    const key = keyOf(namespace, before, ids);
    let chunk = this.#successors(before).get(key) ?? null;
    if (chunk === null) {
      const memory = this.#filledChunk(before, end - start, fill);
      if (memory === null) return null;
      const name = this.#backup?.name(namespace, before?.name ?? null, ids) ?? '';
      const content = { ...memory, length: end - start, hasLogprobs: false, next: -1 };
      chunk = { before, key, after: new Map(), name, ...content, logits: null, state: null, stored: true };
      this.#successors(before).set(key, chunk);
      this.#counts.storedChunks++;
    }
    chunks.push(chunk);
    this.#use(chunks);
    return chunk;
  }

  /** Returns memory with the KV of `length` positions; null if there is no room beside the chunk `before`. */
  #filledChunk(
    before: ChunkNode | null,
    length: number,
    fill: (kv: Uint8Array) => void,
  ): Pick<ChunkNode, 'memory' | 'kv' | 'logprobs'> | null {
    const memory = this.#takeChunk(before);
    if (memory === null) return null;
    const kv = memory.kv.subarray(0, length * this.#kvBytes.positionBytes);
    try {
      fill(kv);
    } catch (error) {
      this.#chunkMemory.give(memory);
      throw error;
    }
    return { memory, kv, logprobs: memory.logprobs };
  }

  /** Returns new memory, or that of the oldest chunk if it is not `kept`. Null without room or memory. */
  #takeChunk(kept: ChunkNode | null): ChunkMemory | null {
    const memory = this.#chunkMemory.take();
    const [oldest] = this.#recency;
    if (memory !== null || oldest === undefined || oldest === kept) return memory;
    this.#remove(oldest);
    this.#counts.evictedChunks++;
    return this.#chunkMemory.take();
  }

  /** Removes a chunk with its successors. */
  #remove(chunk: ChunkNode): void {
    this.#successors(chunk.before).delete(chunk.key);
    const removed = [chunk];
    for (const node of removed) {
      removed.push(...node.after.values());
      this.#logits.drop(node);
      this.states.drop(node);
      this.#recency.delete(node);
      this.#chunkMemory.give(node.memory);
      node.stored = false;
    }
  }
}

/** The positions that a state at a chunk's end saves beside the one before it. */
function savedBy({ length, before }: ChunkNode): number {
  let saved = length;
  for (let node = before; node !== null && node.state === null; node = node.before) saved += node.length;
  return saved;
}

/** Adds the logprobs of a chunk that ends at `end`, and that of the token after it, unless they are known. */
function keepLogprobs(chunk: ChunkNode, logprobs: PromptLogprobs, end: number, next: number): void {
  if (chunk.hasLogprobs && next < 0) return;
  chunk.logprobs.copy(logprobs, end - chunk.length, next < 0 ? end : end + 1, 0);
  chunk.hasLogprobs = true;
  chunk.next = next;
}

/** A chunk's key among the successors of the one before: its ids; with the namespace if it is the first. */
const keyOf = (namespace: string, before: ChunkNode | null, ids: string): string =>
  before === null ? `${namespace.length} ${namespace}${ids}` : ids;

/** The ids as text, a code unit for each half of an id: equal ids give equal texts. */
export const idsOf = (tokens: Int32Array, start: number, end: number): string =>
  unitsOf(new Uint8Array(tokens.buffer, tokens.byteOffset + 4 * start, 4 * (end - start)));

import { type KvBytes, RuntimeFault } from '../../model/model-runner.ts';
import { type ChunkNode, ChunkTree, idsOf, keyOf, savedBy } from './chunk-tree.ts';
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

/**
 * A prompt and its stored chunks, in order. Everything that needs memory can evict chunks, and `drop` removes
 * some. From then on they are not `stored`, and their bytes may belong to another chunk.
 */
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
 * The least recently used chunk is evicted first. Memory never exceeds the budget.
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
  readonly #tree: ChunkTree;
  readonly #backup: ChunkBackup | null;
  readonly #onFault: (fault: RuntimeFault) => void;
  readonly #counts = { hits: 0, misses: 0, storedChunks: 0, restoredTokens: 0, evictedChunks: 0 };

  /** @param onFault called if a device does not bring KV; the prompt is then stored up to there */
  constructor(
    shape: PrefixStoreShape,
    backup: ChunkBackup | null = null,
    onFault: (fault: RuntimeFault) => void = () => undefined,
  ) {
    this.#backup = backup;
    this.#onFault = onFault;
    this.#chunkLength = shape.chunk;
    this.#tree = new ChunkTree(shape.chunk);
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
    const chunks = this.#tree.find(namespace, tokens, limit);
    this.#tree.use(chunks);
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
    const [first] = this.#tree.find(namespace, tokens, end);
    if (first !== undefined) this.#remove(first);
    this.#backup?.drop(this.#backup.name(namespace, null, idsOf(tokens, 0, end)));
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
    const named = () => this.#backup?.name(namespace, before?.name ?? null, ids) ?? '';
    const chunk =
      this.#tree.next(before, key) ?? this.#create({ before, key, length: end - start }, named, fill);
    if (chunk === null) return null;
    chunks.push(chunk);
    this.#tree.use(chunks);
    return chunk;
  }

  #create(
    place: Pick<ChunkNode, 'before' | 'key' | 'length'>,
    name: () => string,
    fill: (kv: Uint8Array) => void,
  ): ChunkNode | null {
    const memory = this.#filledChunk(place.before, place.length, fill);
    if (memory === null) return null;
    this.#counts.storedChunks++;
    const without = { logits: null, state: null, hasLogprobs: false, next: -1 };
    return this.#tree.add({ ...place, ...memory, ...without, name: name() });
  }

  /** Returns memory with the KV of `length` positions; null without room beside the chunk `before`, or KV. */
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
      if (!(error instanceof RuntimeFault) || error.kind === 'device-lost') throw error;
      this.#onFault(error);
      return null;
    }
    return { memory, kv, logprobs: memory.logprobs };
  }

  /** Returns new memory, or that of the oldest chunk if it is not `kept`. Null without room or memory. */
  #takeChunk(kept: ChunkNode | null): ChunkMemory | null {
    const memory = this.#chunkMemory.take();
    const { oldest } = this.#tree;
    if (memory !== null || oldest === null || oldest === kept) return memory;
    this.#remove(oldest);
    this.#counts.evictedChunks++;
    return this.#chunkMemory.take();
  }

  /** Removes a chunk with its successors. */
  #remove(chunk: ChunkNode): void {
    for (const removed of this.#tree.remove(chunk)) {
      this.#logits.drop(removed);
      this.states.drop(removed);
      this.#chunkMemory.give(removed.memory);
    }
  }
}

/** Adds the logprobs of a chunk that ends at `end`, and that of the token after it, unless they are known. */
function keepLogprobs(chunk: ChunkNode, logprobs: PromptLogprobs, end: number, next: number): void {
  if (chunk.hasLogprobs && next < 0) return;
  chunk.logprobs.copy(logprobs, end - chunk.length, next < 0 ? end : end + 1, 0);
  chunk.hasLogprobs = true;
  chunk.next = next;
}

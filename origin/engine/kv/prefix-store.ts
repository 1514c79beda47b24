import type { KvBytes } from '../../model/model-runner.ts';
import {
  allocateChunk,
  allocateLogits,
  type ChunkMemory,
  MemoryPool,
  type PrefixStoreShape,
  prefixStoreRoom,
} from './prefix-memory.ts';
import { type Linked, RecencyList } from './recency-list.ts';
import { SavedKv } from './saved-kv.ts';
import type { RunBackup, RunContent, StoredRun } from './stored-run.ts';
import type { TokenScores } from './token-scores.ts';

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

/** A stored run of a prompt, after the runs on the way from the root. Only whole chunks have children. */
interface Node extends StoredRun, Linked<Node> {
  readonly parent: Node | Root;
  readonly key: string;
  /** In the second tier; empty if there is none. */
  readonly name: string;
  readonly children: Map<string, Node>;
  readonly memory: ChunkMemory;
  logits: Float32Array | null;
  scored: boolean;
  next: number;
  /** False once it was evicted. */
  stored: boolean;
}

/** The beginning of every prompt in a namespace. */
interface Root extends Pick<Node, 'key' | 'name' | 'children'> {
  readonly parent: null;
}

/** A prompt and its stored runs, in order. The runs are valid until the next `add`. */
export interface StoredPrompt {
  readonly namespace: string;
  readonly tokens: Int32Array;
  readonly runs: Node[];
}

/**
 * Keeps the KV of prompts beyond the slots: a radix tree per namespace over the runs of a prefill. All of them are whole
 * chunks, except the last one of a prompt. The bytes are those of the original prefill, so a restored prefix gives the same
 * bits. A prompt's last run is stored with its logits, so an equal prompt needs no run of the model. If the logprobs of the
 * prompt were computed, the runs keep them.
 *
 * The least recently used run is evicted first. A use counts when a prompt begins, and for all its runs. A run is always
 * older than the one before it, so the oldest has no successor. Memory never exceeds the budget.
 */
export class PrefixStore {
  readonly #chunk: number;
  readonly #kvBytes: KvBytes;
  readonly #room: ReturnType<typeof prefixStoreRoom>;
  readonly #chunks: MemoryPool<ChunkMemory>;
  readonly #logits: MemoryPool<Float32Array>;
  /** KV of suspended sequences, in the same memory; it evicts runs. */
  readonly saved: SavedKv;
  readonly #roots = new Map<string, Root>();
  readonly #runs = new RecencyList<Node>();
  /** Runs with logits, least recently used first. */
  readonly #withLogits = new Set<Node>();
  readonly #backup: RunBackup | null;
  readonly #counts = { hits: 0, misses: 0, storedChunks: 0, restoredTokens: 0, evictedChunks: 0 };

  constructor(shape: PrefixStoreShape, backup: RunBackup | null = null) {
    this.#backup = backup;
    this.#chunk = shape.chunk;
    this.#kvBytes = shape.kvBytes;
    this.#room = prefixStoreRoom(shape);
    this.#chunks = new MemoryPool(this.#room.chunks, () => allocateChunk(shape));
    this.#logits = new MemoryPool(this.#room.logits, () => allocateLogits(shape));
    this.saved = new SavedKv(shape, this.#room.chunks, {
      take: () => this.#takeChunk(null),
      give: (memory) => this.#chunks.give(memory),
    });
  }

  get status(): PrefixStoreStatus {
    const { chunkBytes, logitsBytes } = this.#room;
    return { bytes: this.#chunks.used * chunkBytes + this.#logits.used * logitsBytes, ...this.#counts };
  }

  /** Chunks that fit into the budget. */
  get room(): number {
    return this.#room.chunks;
  }

  /** Finds the stored runs at the start of a prompt, within its first `limit` positions, and counts them as used. */
  open(namespace: string, tokens: Int32Array, limit: number): StoredPrompt {
    const prompt = this.use(namespace, tokens, limit);
    const { runs } = prompt;
    const last = runs.at(-1);
    if (last !== undefined && this.#withLogits.delete(last)) this.#withLogits.add(last);
    if (limit > 0) this.#counts[runs.length > 0 ? 'hits' : 'misses']++;
    return prompt;
  }

  /** As `open`, before the prompt begins. */
  use(namespace: string, tokens: Int32Array, limit: number): StoredPrompt {
    const runs = this.#find(namespace, tokens, limit);
    for (const run of runs.toReversed()) this.#runs.use(run);
    return { namespace, tokens, runs };
  }

  /**
   * Adds a run of the second tier after the stored ones of a prompt.
   * @returns false if there is no room, or if a run before it is not stored any more
   */
  insert(prompt: StoredPrompt, content: RunContent): boolean {
    const start = prompt.runs.length * this.#chunk;
    const end = Math.min(start + this.#chunk, prompt.tokens.length);
    const run = this.#append(prompt, start, end, (kv) => kv.set(content.kv));
    if (run === null) return false;
    if (content.scores !== null && !run.scored) {
      run.scores.bytes.set(content.scores);
      run.scored = true;
    }
    if (content.logits !== null && run.logits === null) this.#keepLogits(run, content.logits);
    return true;
  }

  /** Writes stored runs to a slot, from position `start` on. */
  restore(slot: number, start: number, runs: readonly StoredRun[]): void {
    const parts = runs.map(({ kv }) => kv);
    this.#kvBytes.write(slot, start, parts);
    this.#counts.restoredTokens += runs.reduce((sum, { length }) => sum + length, 0);
  }

  /**
   * Stores the run of a prompt that ends at `end` in a slot. Does nothing if a run before it is not stored, or if there is no
   * room beside the prompt's own runs.
   * @param scores of the prompt's positions up to and including `end`; null if they were not computed
   * @param logits of the run's last position; null if they were not computed
   */
  add(
    prompt: StoredPrompt,
    slot: number,
    end: number,
    scores: TokenScores | null,
    logits: Float32Array | null,
  ): void {
    const index = Math.ceil(end / this.#chunk) - 1;
    const start = index * this.#chunk;
    const readKv = (kv: Uint8Array) => this.#kvBytes.read(slot, start, end, kv);
    const run = prompt.runs[index] ?? this.#append(prompt, start, end, readKv);
    if (!run?.stored) return;
    if (logits !== null && run.logits === null) this.#keepLogits(run, logits);
    if (scores !== null) keepScores(run, scores, end, prompt.tokens[end] ?? -1);
    this.#backup?.keep(run);
  }

  /** Removes a prompt whose KV cannot be trusted, and all prompts with the same first run. */
  drop(namespace: string, tokens: Int32Array): void {
    const end = Math.min(this.#chunk, tokens.length);
    const [first] = this.#find(namespace, tokens, end);
    if (first !== undefined) this.#remove(first);
    this.#backup?.drop(this.#backup.name(this.#backup.name(null, namespace), keyOf(tokens, 0, end)));
  }

  #find(namespace: string, tokens: Int32Array, limit: number): Node[] {
    const runs: Node[] = [];
    let children = this.#roots.get(namespace)?.children;
    for (let start = 0; children !== undefined && start < limit; start += this.#chunk) {
      const end = Math.min(start + this.#chunk, tokens.length);
      const run = end <= limit ? children.get(keyOf(tokens, start, end)) : undefined;
      if (run !== undefined) runs.push(run);
      children = run?.children;
    }
    return runs;
  }

  /** Adds a run to the stored ones of a prompt. Returns null if it cannot be stored. */
  #append({ namespace, tokens, runs }: StoredPrompt, start: number, end: number, fill: Fill): Node | null {
    const before = runs.at(-1) ?? null;
    if (runs.length * this.#chunk !== start || before?.stored === false) return null;
    const parent = before ?? this.#roots.get(namespace) ?? this.#newRoot(namespace);
    const key = keyOf(tokens, start, end);
    const run = parent.children.get(key) ?? this.#store(parent, key, end - start, fill);
    if (run !== null) runs.push(run);
    return run;
  }

  #newRoot(key: string): Root {
    return { parent: null, key, name: this.#backup?.name(null, key) ?? '', children: new Map() };
  }

  #store(parent: Node | Root, key: string, length: number, fill: Fill): Node | null {
    const memory = this.#takeChunk(parent);
    if (memory === null) return null;
    const kv = memory.kv.subarray(0, length * this.#kvBytes.positionBytes);
    try {
      fill(kv);
    } catch (error) {
      this.#chunks.give(memory);
      throw error;
    }
    const { scores } = memory;
    const name = this.#backup?.name(parent.name, key) ?? '';
    const place = { parent, key, name, children: new Map(), older: null, newer: null };
    const run: Node = {
      ...place,
      length,
      memory,
      kv,
      scores,
      scored: false,
      next: -1,
      logits: null,
      stored: true,
    };
    if (parent.parent === null) this.#roots.set(parent.key, parent);
    parent.children.set(key, run);
    this.#runs.add(run, parent.parent === null ? null : parent);
    this.#counts.storedChunks++;
    return run;
  }

  #keepLogits(run: Node, logits: Float32Array): void {
    let memory = this.#logits.take();
    if (memory === null) {
      const [oldest] = this.#withLogits;
      if (oldest === undefined) return;
      this.#dropLogits(oldest);
      memory = this.#logits.take();
    }
    if (memory === null) return;
    memory.set(logits);
    run.logits = memory;
    this.#withLogits.add(run);
  }

  #dropLogits(run: Node): void {
    if (run.logits === null) return;
    this.#logits.give(run.logits);
    this.#withLogits.delete(run);
    run.logits = null;
  }

  /** Returns new memory, or that of the oldest run if it is not `kept`. Null without room or memory. */
  #takeChunk(kept: Node | Root | null): ChunkMemory | null {
    const memory = this.#chunks.take();
    const { oldest } = this.#runs;
    if (memory !== null || oldest === null || oldest === kept) return memory;
    this.#remove(oldest);
    this.#counts.evictedChunks++;
    return this.#chunks.take();
  }

  /** Removes a run with its successors. */
  #remove(run: Node): void {
    const { parent, key } = run;
    parent.children.delete(key);
    if (parent.parent === null && parent.children.size === 0) this.#roots.delete(parent.key);
    const removed = [run];
    for (const one of removed) {
      removed.push(...one.children.values());
      this.#dropLogits(one);
      this.#runs.remove(one);
      this.#chunks.give(one.memory);
      one.stored = false;
    }
  }
}

type Fill = (kv: Uint8Array) => void;

/** Adds the scores of a run that ends at `end`, and that of the token after it, unless they are known. */
function keepScores(run: Node, scores: TokenScores, end: number, next: number): void {
  if (run.scored && next < 0) return;
  run.scores.copy(scores, end - run.length, next < 0 ? end : end + 1, 0);
  run.scored = true;
  run.next = next;
}

/** The ids as text: equal runs have equal keys. */
export const keyOf = (tokens: Int32Array, start: number, end: number): string =>
  Buffer.from(tokens.buffer, tokens.byteOffset + 4 * start, 4 * (end - start)).toString('latin1');

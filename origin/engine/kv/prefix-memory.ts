import { MAX_TOP_LOGPROBS } from '@continuo/shared/logprob.ts';
import type { KvBytes } from '../../model/model-runner.ts';
import { logprobBytes, PromptLogprobs } from './prompt-logprobs.ts';

export interface PrefixStoreShape {
  /** Positions of a chunk. */
  readonly chunk: number;
  readonly kvBytes: KvBytes;
  /** Bytes of a slot's state; absent or 0 = the model has none. */
  readonly stateBytes?: number;
  readonly vocabularySize: number;
  readonly budgetBytes: number;
}

/** Memory for one chunk. */
export interface ChunkMemory {
  readonly kv: Uint8Array;
  /** Of the chunk's positions and of the one after it. */
  readonly logprobs: PromptLogprobs;
}

/** Most of the budget that logits take. */
const MAX_LOGITS_SHARE = 1 / 8;
/** A prompt has one row of logits and one chunk at least, mostly more. */
const CHUNKS_PER_LOGITS = 2;

/** Most of the budget that states take. */
const MAX_STATES_SHARE = 1 / 2;

/** As many states as chunks, if they are small. */
function roomForStates({ stateBytes = 0, budgetBytes }: PrefixStoreShape, chunkBytes: number): number {
  if (stateBytes === 0) return 0;
  const most = Math.min(
    (budgetBytes * MAX_STATES_SHARE) / stateBytes,
    budgetBytes / (chunkBytes + stateBytes),
  );
  return Math.floor(most);
}

/** Returns the bytes of a chunk with logprobs, a row of logits and a state, and how many of each fit. */
export function prefixStoreRoom(shape: PrefixStoreShape) {
  const { chunk, kvBytes, stateBytes = 0, vocabularySize } = shape;
  const chunkBytes = chunk * kvBytes.positionBytes + (chunk + 1) * logprobBytes(MAX_TOP_LOGPROBS);
  const logitsBytes = 4 * vocabularySize;
  const states = roomForStates(shape, chunkBytes);
  const budgetBytes = shape.budgetBytes - states * stateBytes;
  const logits = Math.floor(
    Math.min(
      (budgetBytes * MAX_LOGITS_SHARE) / logitsBytes,
      budgetBytes / (CHUNKS_PER_LOGITS * chunkBytes + logitsBytes),
    ),
  );
  const chunks = Math.floor((budgetBytes - logits * logitsBytes) / chunkBytes);
  return { chunkBytes, logitsBytes, stateBytes, chunks, logits, states };
}

/** Memory of equal size that is allocated up to a limit and then reused, so garbage is bounded. */
export class MemoryPool<T> {
  readonly #allocate: () => T;
  readonly #room: number;
  #allocated = 0;
  readonly #unused: T[] = [];
  readonly #waiting: ((memory: T) => void)[] = [];

  /** @param room how many there may be */
  constructor(room: number, allocate: () => T) {
    this.#room = room;
    this.#allocate = allocate;
  }

  /** How many are in use. */
  get used(): number {
    return this.#allocated - this.#unused.length;
  }

  /** Returns null without room, or if the system has no memory left. */
  take(): T | null {
    const unused = this.#unused.pop();
    if (unused !== undefined || this.#allocated >= this.#room) return unused ?? null;
    try {
      const memory = this.#allocate();
      this.#allocated++;
      return memory;
    } catch {
      return null;
    }
  }

  /** Waits for memory. Returns null if there is none and none will be given back. */
  async wait(): Promise<T | null> {
    const memory = this.take();
    if (memory !== null || this.used === 0) return memory;
    return await new Promise((resolve) => this.#waiting.push(resolve));
  }

  give(memory: T): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#unused.push(memory);
    else next(memory);
  }
}

// The collector of V8 runs after every few MiB of memory that is not shared, which takes a tenth of a
// prefill.

export function allocateChunk({ chunk, kvBytes }: PrefixStoreShape): ChunkMemory {
  const logprobsBytes = (chunk + 1) * logprobBytes(MAX_TOP_LOGPROBS);
  const memory = new SharedArrayBuffer(logprobsBytes + chunk * kvBytes.positionBytes);
  const logprobs = new PromptLogprobs(chunk + 1, MAX_TOP_LOGPROBS, memory);
  return { logprobs, kv: new Uint8Array(memory, logprobsBytes) };
}

export const allocateLogits = ({ vocabularySize }: PrefixStoreShape): Float32Array =>
  new Float32Array(new SharedArrayBuffer(4 * vocabularySize));

export const allocateState = ({ stateBytes = 0 }: PrefixStoreShape): Uint8Array =>
  new Uint8Array(new SharedArrayBuffer(stateBytes));

import type { MemoryPool } from './prefix-memory.ts';

interface Owner {
  /** What it saves if it is used. */
  readonly worth: number;
  uses: number;
  /** The lowest one is given away. */
  rank: number;
}

/**
 * Memory that some chunks of the prefix store have beside their KV, in the field `K`: a row of logits, or a
 * state. If there is no room, the memory of lowest rank is given to the next chunk (greedy dual size
 * frequency). Each use adds its worth to a rank. What was given away lowers the ranks of all that were used
 * before. Of equal ranks, the least recently used one is given.
 */
export class ExtraMemory<K extends string, T> {
  readonly #key: K;
  readonly #pool: MemoryPool<T>;
  /** Chunks that have some, least recently used first. */
  readonly #owners = new Map<Record<K, T | null>, Owner>();
  /** The highest rank that was given away. */
  #floor = 0;

  constructor(key: K, pool: MemoryPool<T>) {
    this.#key = key;
    this.#pool = pool;
  }

  /** How many are in use. */
  get used(): number {
    return this.#pool.used;
  }

  /** Notes that a chunk's was used. */
  touch(chunk: Record<K, T | null> | undefined): void {
    const owner = chunk && this.#owners.get(chunk);
    if (chunk === undefined || owner === undefined) return;
    owner.uses += 1;
    owner.rank = this.#floor + owner.worth * owner.uses;
    this.#owners.delete(chunk);
    this.#owners.set(chunk, owner);
  }

  /** Gives a chunk memory and fills it, unless it has some, or there is none. */
  keep(chunk: Record<K, T | null>, fill: (memory: T) => void, worth = 0): void {
    const memory = chunk[this.#key] === null ? this.take() : null;
    if (memory === null) return;
    fill(memory);
    chunk[this.#key] = memory;
    this.#owners.set(chunk, { worth, uses: 1, rank: this.#floor + worth });
  }

  drop(chunk: Record<K, T | null>): void {
    const memory = chunk[this.#key];
    if (memory === null) return;
    this.#pool.give(memory);
    this.#owners.delete(chunk);
    chunk[this.#key] = null;
  }

  /** Returns memory, or that of the chunk with the lowest rank. Null without room or memory. */
  take(): T | null {
    const memory = this.#pool.take();
    const lowest = memory === null ? this.#lowest() : null;
    if (lowest === null) return memory;
    this.#floor = this.#owners.get(lowest)!.rank;
    this.drop(lowest);
    return this.#pool.take();
  }

  #lowest(): Record<K, T | null> | null {
    let lowest: Record<K, T | null> | null = null;
    let least = Infinity;
    for (const [chunk, { rank }] of this.#owners) {
      if (rank < least) [lowest, least] = [chunk, rank];
      // No rank is below the floor.
      if (least === this.#floor) break;
    }
    return lowest;
  }

  give(memory: T): void {
    this.#pool.give(memory);
  }
}

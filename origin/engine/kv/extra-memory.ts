import type { MemoryPool } from './prefix-memory.ts';

/**
 * Memory that some chunks of the prefix store have beside their KV, in the field `K`: a row of logits, or a
 * state. If there is no room, the least recently used one is given to the next chunk.
 */
export class ExtraMemory<K extends string, T> {
  readonly #key: K;
  readonly #pool: MemoryPool<T>;
  /** Chunks that have some, least recently used first. */
  readonly #owners = new Set<Record<K, T | null>>();

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
    if (chunk !== undefined && this.#owners.delete(chunk)) this.#owners.add(chunk);
  }

  /** Gives a chunk memory and fills it, unless it has some, or there is none. */
  keep(chunk: Record<K, T | null>, fill: (memory: T) => void): void {
    const memory = chunk[this.#key] === null ? this.take() : null;
    if (memory === null) return;
    fill(memory);
    chunk[this.#key] = memory;
    this.#owners.add(chunk);
  }

  drop(chunk: Record<K, T | null>): void {
    const memory = chunk[this.#key];
    if (memory === null) return;
    this.#pool.give(memory);
    this.#owners.delete(chunk);
    chunk[this.#key] = null;
  }

  /** Returns memory, or that of the least recently used chunk. Null without room or memory. */
  take(): T | null {
    const memory = this.#pool.take();
    const [oldest] = this.#owners;
    if (memory !== null || oldest === undefined) return memory;
    this.drop(oldest);
    return this.#pool.take();
  }

  give(memory: T): void {
    this.#pool.give(memory);
  }
}

import type { KvBytes } from '../../model/model-runner.ts';
import type { ChunkMemory, MemoryPool, PrefixStoreShape } from './prefix-memory.ts';

/** Keeps the KV of suspended sequences in memory of the prefix store, not evicted. */
export class SavedKv {
  readonly #chunk: number;
  readonly #kvBytes: KvBytes;
  readonly #room: number;
  readonly #memory: Pick<MemoryPool<ChunkMemory>, 'take' | 'give'>;
  #chunks = 0;

  /** @param room chunks that it may hold */
  constructor(
    { chunk, kvBytes }: Pick<PrefixStoreShape, 'chunk' | 'kvBytes'>,
    room: number,
    memory: Pick<MemoryPool<ChunkMemory>, 'take' | 'give'>,
  ) {
    this.#chunk = chunk;
    this.#kvBytes = kvBytes;
    this.#room = room;
    this.#memory = memory;
  }

  /** Chunks of memory that it holds. */
  get chunks(): number {
    return this.#chunks;
  }

  /**
   * Copies positions [0, length) of a slot.
   * @returns null if there is no room or memory
   * @throws if the KV cannot be read
   */
  save(slot: number, length: number): readonly ChunkMemory[] | null {
    const saved = this.#take(Math.ceil(length / this.#chunk));
    if (saved === null) return null;
    try {
      for (const [index, part] of this.#parts(saved, length).entries()) {
        const start = index * this.#chunk;
        this.#kvBytes.read(slot, start, Math.min(length, start + this.#chunk), part);
      }
    } catch (error) {
      this.free(saved);
      throw error;
    }
    return saved;
  }

  /** Writes saved KV to a slot and gives the memory back. @throws if the KV cannot be written */
  writeBack(slot: number, saved: readonly ChunkMemory[], length: number): void {
    try {
      this.#kvBytes.write(slot, 0, this.#parts(saved, length));
    } finally {
      this.free(saved);
    }
  }

  /** Gives saved memory back. */
  free(saved: readonly ChunkMemory[]): void {
    this.#chunks -= saved.length;
    for (const memory of saved) this.#memory.give(memory);
  }

  #take(count: number): ChunkMemory[] | null {
    if (this.#chunks + count > this.#room) return null;
    const taken: ChunkMemory[] = [];
    while (taken.length < count) {
      const memory = this.#memory.take();
      if (memory === null) break;
      taken.push(memory);
      this.#chunks++;
    }
    if (taken.length === count) return taken;
    this.free(taken);
    return null;
  }

  /** The bytes of [0, length), chunk by chunk. */
  #parts(saved: readonly ChunkMemory[], length: number): Uint8Array[] {
    const bytesAfter = (index: number) => (length - index * this.#chunk) * this.#kvBytes.positionBytes;
    return saved.map(({ kv }, index) => kv.subarray(0, bytesAfter(index)));
  }
}

import { BLOCK_SIZE } from '../../model/sparse-logits.ts';
import { Arena, type ArenaShare, createArenaMemory, type ViewMemory } from './arena.ts';

/**
 * Reduces rows of logits in blocks of 128 consecutive ids with WebAssembly SIMD. The last block may be
 * shorter. Reads rows in place if `allocate` made their memory, and copies other rows. A result depends on
 * the row's bits only, not on where the row lies.
 */
export class SimdKernel {
  readonly #threads: number;
  readonly #viewMemory: ViewMemory;
  readonly #arenas = new Map<ArrayBufferLike, Arena>();
  /** For rows in other memory. */
  #scratch: Arena | null = null;

  /**
   * @param threads that will read the allocated rows
   * @param viewMemory by default the kernel uses the SharedArrayBuffer itself: typed arrays on it work the
   *   same way
   */
  constructor(threads = 1, viewMemory: ViewMemory = (memory) => memory as ArrayBufferLike as ArrayBuffer) {
    this.#threads = threads;
    this.#viewMemory = viewMemory;
  }

  /** The kernel of another thread, the `thread`-th (1 …) that reads these rows, and its view of them. */
  static attach(
    share: ArenaShare,
    thread: number,
    viewMemory: ViewMemory,
  ): { kernel: SimdKernel; arena: Arena } {
    const kernel = new SimdKernel(1, viewMemory);
    const arena = new Arena(share, thread, viewMemory);
    kernel.#arenas.set(arena.rows.buffer, arena);
    return { kernel, arena };
  }

  /** Memory for rows that the kernel reads in place. It is never freed. */
  allocate(length: number): Float32Array<ArrayBuffer> {
    const arena = this.#createArena(length);
    this.#arenas.set(arena.rows.buffer, arena);
    return arena.rows;
  }

  /** The arena that holds the row, or null if other threads cannot read it. */
  sharedArenaOf(row: Float32Array): Arena | null {
    const arena = this.#arenas.get(row.buffer);
    return arena !== undefined && arena.share.threads > 1 ? arena : null;
  }

  /** Writes each block's largest logit. Returns false if a logit is NaN or +∞, maxima then undefined. */
  maxima(row: Float32Array, maxima: Float32Array): boolean {
    const arena = this.#arenaOf(row);
    const { functions, results } = arena;
    let isValid = true;
    arena.forEachPart(row, (address, blocks, firstBlock) => {
      if (functions.maxima(address, blocks, results.byteOffset) === 0) isValid = false;
      maxima.set(results.subarray(0, blocks), firstBlock);
    });
    return isValid;
  }

  /**
   * Writes two numbers for each block, Σ e^x and Σ e^x · x / ln 2 with x = (z − highest) · coldness, to
   * float32's precision. Those of a block whose largest term is below e^−87 are undefined.
   */
  sums(row: Float32Array, highest: number, coldness: number, sums: Float32Array): void {
    const arena = this.#arenaOf(row);
    const { functions, results } = arena;
    arena.forEachPart(row, (address, blocks, firstBlock) => {
      functions.sums(address, blocks, results.byteOffset, highest, coldness);
      sums.set(results.subarray(0, 2 * blocks), 2 * firstBlock);
    });
  }

  /** Adds to `totals` the number of the logits above −∞, Σ d and Σ d² with d = highest − z, in float64. */
  deviations(row: Float32Array, highest: number, totals: Float64Array): void {
    const arena = this.#arenaOf(row);
    const { functions, wideResults } = arena;
    arena.forEachPart(row, (address, blocks) => {
      functions.deviations(address, blocks, wideResults.byteOffset, highest);
      for (let i = 0; i < 3; i++) totals[i]! += wideResults[i]!;
    });
  }

  /**
   * Writes the ids of the logits that are at least `cut`, a finite float32, in ascending order; returns how
   * many.
   * @param maxima each block's largest logit: blocks below the cut are skipped
   */
  list(row: Float32Array, maxima: Float32Array, cut: number, ids: Int32Array): number {
    const arena = this.#arenaOf(row);
    const { functions, results } = arena;
    let listed = 0;
    arena.forEachPart(row, (address, blocks, firstBlock) => {
      results.set(maxima.subarray(firstBlock, firstBlock + blocks));
      const first = firstBlock * BLOCK_SIZE;
      const count = functions.list(address, blocks, results.byteOffset, cut, first, arena.ids.byteOffset);
      ids.set(arena.ids.subarray(0, count), listed);
      listed += count;
    });
    return listed;
  }

  #arenaOf(row: Float32Array): Arena {
    return this.#arenas.get(row.buffer) ?? (this.#scratch ??= this.#createArena(0));
  }

  #createArena(length: number): Arena {
    return new Arena(createArenaMemory(length, this.#threads), 0, this.#viewMemory);
  }
}

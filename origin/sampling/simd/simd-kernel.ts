import type { BlockKernel } from '../block-kernel.ts';
import { BLOCK_SIZE } from './block-loop.ts';
import { type BlockReductions, blockReductions } from './block-reductions.ts';
import { Instance, Memory, Module } from './webassembly.ts';

const PAGE_BYTES = 65_536;

/** Of a block's marks. */
const WORDS = BLOCK_SIZE / 32;

/** Above, a kernel is worth its calls; up to there, sums keep all of float64's precision. */
const LARGE_VOCABULARY = 32_768;

export function isLargeVocabulary(vocabularySize: number): boolean {
  return vocabularySize > LARGE_VOCABULARY;
}

/** A memory of its own with an instance of the module over it. */
interface Arena {
  readonly reductions: BlockReductions;
  readonly rows: Float32Array<ArrayBuffer>;
  /** For a number of each block of one row; behind `rows`. */
  readonly results: Float32Array<ArrayBuffer>;
  /** For a bit of each logit; behind `results`. */
  readonly words: Uint32Array<ArrayBuffer>;
}

/**
 * A BlockKernel in WebAssembly's vector instructions, on the calling thread. It reads rows in place where their memory
 * came from `allocate`, and copies others.
 */
export class SimdKernel implements BlockKernel {
  readonly blockSize = BLOCK_SIZE;
  readonly #module = new Module(blockReductions());
  readonly #arenas = new Map<ArrayBufferLike, Arena>();
  /** For rows from elsewhere. */
  #copies: Arena | null = null;

  /** Numbers that lie where this kernel can read them; kept as long as the kernel. */
  allocate(length: number): Float32Array<ArrayBuffer> {
    const arena = this.#open(length);
    this.#arenas.set(arena.rows.buffer, arena);
    return arena.rows;
  }

  maxima(row: Float32Array, maxima: Float32Array): boolean {
    const arena = this.#arenaOf(row);
    const blocks = Math.floor(row.length / BLOCK_SIZE);
    const sound = arena.reductions.maxima(this.#addressOf(row, arena), blocks, arena.results.byteOffset);
    maxima.set(arena.results.subarray(0, blocks));
    return sound === 1;
  }

  sums(row: Float32Array, highest: number, coldness: number, sums: Float64Array): void {
    const arena = this.#arenaOf(row);
    const blocks = Math.floor(row.length / BLOCK_SIZE);
    const address = this.#addressOf(row, arena);
    arena.reductions.sums(address, blocks, arena.results.byteOffset, highest, coldness);
    sums.set(arena.results.subarray(0, blocks));
  }

  marks(row: Float32Array, maxima: Float32Array, cut: number): Uint32Array {
    const arena = this.#arenaOf(row);
    const { reductions, results, words } = arena;
    const blocks = Math.floor(row.length / BLOCK_SIZE);
    results.set(maxima);
    reductions.marks(this.#addressOf(row, arena), blocks, words.byteOffset, cut, results.byteOffset);
    return words.subarray(0, blocks * WORDS);
  }

  #arenaOf(row: Float32Array): Arena {
    const own = this.#arenas.get(row.buffer);
    if (own !== undefined) return own;
    if (this.#copies === null || this.#copies.rows.length < row.length) this.#copies = this.#open(row.length);
    this.#copies.rows.set(row);
    return this.#copies;
  }

  #addressOf(row: Float32Array, { rows }: Arena): number {
    return row.buffer === rows.buffer ? row.byteOffset : rows.byteOffset;
  }

  #open(length: number): Arena {
    const blocks = Math.ceil(length / BLOCK_SIZE);
    const pages = Math.ceil((4 * (length + blocks + blocks * WORDS)) / PAGE_BYTES);
    const memory = new Memory({ initial: pages, maximum: pages });
    const { exports } = new Instance(this.#module, { memory: { of: memory } });
    return {
      // The module is made here, so that its exports are known.
      reductions: exports as BlockReductions,
      rows: new Float32Array(memory.buffer, 0, length),
      results: new Float32Array(memory.buffer, 4 * length, blocks),
      words: new Uint32Array(memory.buffer, 4 * (length + blocks), blocks * WORDS),
    };
  }
}

import type { BlockKernel } from '../block-kernel.ts';
import type { Row } from '../truncation/gather.ts';
import { Arena, type ArenaShare, BLOCKS_LISTED, type BytesOf, createArena } from './arena.ts';
import { BLOCK_SIZE } from './block-loop.ts';
import { blockReductions } from './block-reductions.ts';
import { Module, type WasmMemory } from './webassembly.ts';

/** Above, a kernel is worth its calls; up to there, sums keep all of float64's precision. */
const LARGE_VOCABULARY = 32_768;

export function isLargeVocabulary(vocabularySize: number): boolean {
  return vocabularySize > LARGE_VOCABULARY;
}

/** Threads that look at the same rows. */
export interface Company {
  /** How many, the calling one among them. */
  readonly threads: number;
  /** Shared memory as an ordinary buffer, which keeps it alive. V8 copies from shared ones four times as slowly. */
  ordinary(memory: SharedArrayBuffer): ArrayBuffer;
}

/**
 * A BlockKernel in WebAssembly's vector instructions. It reads rows in place where their memory came from `allocate`, of this
 * kernel or of the one that it is beside, and copies others.
 */
export class SimdKernel implements BlockKernel {
  readonly blockSize = BLOCK_SIZE;
  readonly #module: object;
  readonly #company: Company | null;
  readonly #arenas = new Map<ArrayBufferLike, Arena>();
  /** For rows from elsewhere. */
  #copies: Arena | null = null;

  /** @param company threads with kernels beside this one; none unless given */
  constructor(company: Company | null = null) {
    this.#company = company;
    this.#module = new Module(blockReductions(company !== null));
  }

  /** A kernel on another thread, which is the `thread`-th (1 …) to look at these rows, and a view of all of them. */
  static beside(share: ArenaShare, thread: number, { ordinary }: Pick<Company, 'ordinary'>) {
    const kernel = new SimdKernel();
    const arena = new Arena(share, thread, bytesBy(ordinary));
    kernel.#arenas.set(arena.rows.buffer, arena);
    return { kernel, arena };
  }

  allocate(length: number): Float32Array<ArrayBuffer> {
    const arena = this.#open(length);
    this.#arenas.set(arena.rows.buffer, arena);
    return arena.rows;
  }

  /** Where a row lies that other threads can look at; null where it cannot be. */
  sharedArenaOf(row: Float32Array): Arena | null {
    const arena = this.#arenas.get(row.buffer);
    return arena !== undefined && arena.share.threads > 1 ? arena : null;
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

  moments({ logits, highest, coldness }: Row, sums: Float64Array, moments: Float64Array): void {
    const arena = this.#arenaOf(logits);
    const { reductions, results } = arena;
    const blocks = Math.floor(logits.length / BLOCK_SIZE);
    reductions.moments(this.#addressOf(logits, arena), blocks, results.byteOffset, highest, coldness);
    for (let block = 0; block < blocks; block++) {
      sums[block] = results[2 * block]!;
      moments[block] = results[2 * block + 1]! * Math.LN2;
    }
  }

  sumsAbove({ logits, highest, coldness }: Row, cut: number, sums: Float64Array, above: Float64Array): void {
    const arena = this.#arenaOf(logits);
    const { reductions, results } = arena;
    const blocks = Math.floor(logits.length / BLOCK_SIZE);
    reductions.sumsAbove(this.#addressOf(logits, arena), blocks, results.byteOffset, highest, coldness, cut);
    for (let block = 0; block < blocks; block++) {
      sums[block] = results[2 * block]!;
      above[block] = results[2 * block + 1]!;
    }
  }

  deviations(row: Float32Array, highest: number, sums: Float64Array): void {
    const arena = this.#arenaOf(row);
    // Weights have the room for the results and are not needed at the same time.
    const { reductions, weights: results } = arena;
    const blocks = Math.floor(row.length / BLOCK_SIZE);
    reductions.deviations(this.#addressOf(row, arena), blocks, results.byteOffset, highest);
    sums[0] = -(results[0]! + results[1]!);
    sums[1] = results[2]! + results[3]!;
    sums[2] = results[4]! + results[5]!;
  }

  list(
    row: Row,
    maxima: Float32Array,
    cut: number,
    limit: number,
    ids: Int32Array,
    weights: Float64Array | null,
  ): number {
    const arena = this.#arenaOf(row.logits);
    const blocks = Math.floor(row.logits.length / BLOCK_SIZE);
    const address = this.#addressOf(row.logits, arena);
    arena.results.set(maxima);
    let listed = 0;
    for (let block = 0; block < blocks; block += BLOCKS_LISTED) {
      const count = listPart(arena, address, block, Math.min(BLOCKS_LISTED, blocks - block), cut, limit);
      if (count === 0) continue;
      ids.set(arena.ids.subarray(0, count), listed);
      if (weights !== null) {
        weighPart(arena, address, count, row);
        weights.set(arena.weights.subarray(0, count), listed);
      }
      listed += count;
    }
    return listed;
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
    const company = this.#company;
    const share = createArena(this.#module, length, company?.threads ?? 1);
    return new Arena(share, 0, bytesBy(company?.ordinary ?? null));
  }
}

function bytesBy(ordinary: Company['ordinary'] | null): BytesOf {
  return ({ buffer }: WasmMemory): ArrayBuffer => {
    if (buffer instanceof ArrayBuffer) return buffer;
    if (ordinary === null) throw new Error('memory is shared without anybody to share it with');
    return ordinary(buffer);
  };
}

/** Lists the tokens of some blocks of a row; how many. */
function listPart(
  arena: Arena,
  row: number,
  block: number,
  blocks: number,
  cut: number,
  limit: number,
): number {
  const { reductions, results, ids } = arena;
  const first = block * BLOCK_SIZE;
  const end = reductions.list(
    row + 4 * first,
    blocks,
    ids.byteOffset,
    cut,
    limit,
    results.byteOffset + 4 * block,
    first,
  );
  return (end - ids.byteOffset) / 4;
}

/** Weighs the tokens listed last. */
function weighPart(
  { reductions, ids, weights }: Arena,
  address: number,
  count: number,
  { highest, coldness }: Row,
): void {
  const { byteOffset } = ids;
  // Weights are made in pairs.
  ids[count] = 0;
  reductions.weights(address, byteOffset, byteOffset + 4 * count, weights.byteOffset, highest, coldness);
}

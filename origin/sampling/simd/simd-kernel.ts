import type { BlockKernel, RowAhead } from '../block-kernel.ts';
import type { Row } from '../truncation/gather.ts';
import { BLOCK_SIZE } from './block-loop.ts';
import { type BlockReductions, blockReductions } from './block-reductions.ts';
import { ReductionTeam } from './reduction-team.ts';
import { NUMBERS_AHEAD } from './row-reducer.ts';
import type { Helpers } from './shared-work.ts';
import { TABLE_BYTES, writeTables } from './tables.ts';
import { Instance, Memory, Module, type WasmMemory } from './webassembly.ts';

const PAGE_BYTES = 65_536;

/** Numbers that a function gives of each block, at most. */
const RESULTS = 2;

/** Tokens are listed and weighed in parts of as many blocks, so that a part stays in the cache. */
const BLOCKS_LISTED = 64;
/** The numbers of a part, and three that the kernel may write behind them, in whole vectors. */
const LISTED = BLOCKS_LISTED * BLOCK_SIZE + 4;

/** Fewer rows are not worth waking the other threads. */
const LEAST_AHEAD = 2;

/** Above, a kernel is worth its calls; up to there, sums keep all of float64's precision. */
const LARGE_VOCABULARY = 32_768;

export function isLargeVocabulary(vocabularySize: number): boolean {
  return vocabularySize > LARGE_VOCABULARY;
}

/** A memory of its own with an instance of the module over it: tables, rows, and what is found about one row. */
interface Arena {
  readonly memory: WasmMemory;
  /** All of the memory, as numbers are copied fastest. */
  readonly bytes: ArrayBuffer;
  readonly reductions: BlockReductions;
  readonly rows: Float32Array<ArrayBuffer>;
  /** For a number or two of each block. */
  readonly results: Float32Array<ArrayBuffer>;
  /** For the tokens of a part. */
  readonly ids: Int32Array<ArrayBuffer>;
  readonly weights: Float64Array<ArrayBuffer>;
  /** Where a row's results go that is reduced ahead; both in bytes. */
  readonly resultsOf: (row: number) => number;
  /** Begun with the first rows that are reduced ahead. */
  team: ReductionTeam | null;
}

/**
 * A BlockKernel in WebAssembly's vector instructions, on the calling thread and, ahead, on others beside it. It reads rows
 * in place where their memory came from `allocate`, and copies others.
 */
export class SimdKernel implements BlockKernel {
  readonly blockSize = BLOCK_SIZE;
  readonly #module: object;
  readonly #arenas = new Map<ArrayBufferLike, Arena>();
  readonly #helpers: Helpers | null;
  /** For rows from elsewhere. */
  #copies: Arena | null = null;

  /** @param helpers reduce rows ahead, together with the calling thread */
  constructor(helpers: Helpers | null = null) {
    this.#helpers = helpers;
    this.#module = new Module(blockReductions(helpers !== null));
  }

  /** Numbers that lie where this kernel can read them; kept as long as the kernel. */
  allocate(length: number): Float32Array<ArrayBuffer> {
    const arena = this.#open(length);
    this.#arenas.set(arena.rows.buffer, arena);
    return arena.rows;
  }

  reduceAhead(rows: readonly RowAhead[]): void {
    this.forget();
    if (this.#helpers === null || rows.length < LEAST_AHEAD) return;
    const arena = this.#arenas.get(rows[0]!.row.buffer);
    if (arena === undefined) return;
    arena.team ??= new ReductionTeam({ ...arena, module: this.#module, helpers: this.#helpers });
    arena.team.reduce(rows.filter(({ row }) => row.buffer === arena.rows.buffer));
  }

  forget(): void {
    for (const { team } of this.#arenas.values()) team?.forget();
  }

  maxima(row: Float32Array, maxima: Float32Array): boolean {
    const arena = this.#arenaOf(row);
    const blocks = Math.floor(row.length / BLOCK_SIZE);
    const ahead = arena.team?.maxima(row, maxima) ?? null;
    if (ahead !== null) return ahead;
    const sound = arena.reductions.maxima(this.#addressOf(row, arena), blocks, arena.results.byteOffset);
    maxima.set(arena.results.subarray(0, blocks));
    return sound === 1;
  }

  sums(row: Float32Array, highest: number, coldness: number, sums: Float64Array): void {
    const arena = this.#arenaOf(row);
    const blocks = Math.floor(row.length / BLOCK_SIZE);
    if (arena.team?.sums(row, highest, coldness, sums)) return;
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
    const blocks = Math.ceil(length / BLOCK_SIZE);
    // The lists come first, so that all of them lie where their numbers may.
    const [ids, weights] = [TABLE_BYTES, TABLE_BYTES + 4 * LISTED];
    const rows = weights + 8 * LISTED;
    const results = rows + 4 * length;
    const ahead = results + 4 * RESULTS * blocks;
    const pages = Math.ceil((ahead + 4 * NUMBERS_AHEAD * blocks) / PAGE_BYTES);
    const memory = new Memory({ initial: pages, maximum: pages, shared: this.#helpers !== null });
    const buffer = this.#bytesOf(memory);
    writeTables(buffer);
    const { exports } = new Instance(this.#module, { memory: { of: memory } });
    return {
      memory,
      bytes: buffer,
      // The module is made here, so that its exports are known.
      reductions: exports as BlockReductions,
      ids: new Int32Array(buffer, ids, LISTED),
      weights: new Float64Array(buffer, weights, LISTED),
      rows: new Float32Array(buffer, rows, length),
      results: new Float32Array(buffer, results, RESULTS * blocks),
      // A row has no more whole blocks than lie between its beginning and the next one's.
      resultsOf: (row) => ahead + 4 * NUMBERS_AHEAD * Math.floor((row - rows) / 4 / BLOCK_SIZE),
      team: null,
    };
  }

  #bytesOf({ buffer }: WasmMemory): ArrayBuffer {
    if (buffer instanceof ArrayBuffer) return buffer;
    if (this.#helpers === null) throw new Error('memory is shared without anybody to share it with');
    return this.#helpers.ordinary(buffer);
  }
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

import { BLOCK_SIZE } from './block-loop.ts';
import type { BlockReductions } from './block-reductions.ts';
import { TABLE_BYTES, writeTables } from './tables.ts';
import { Instance, Memory, type WasmMemory } from './webassembly.ts';

const PAGE_BYTES = 65_536;
/** Whatever begins there lies as every vector instruction likes it. */
const ALIGNMENT = 64;

/** Numbers that a function gives of each block, at most. */
const RESULTS = 2;

/** Tokens are listed and weighed in parts of as many blocks, so that a part stays in the cache. */
export const BLOCKS_LISTED = 64;
/** The numbers of a part, and three that the kernel may write behind them, in whole vectors. */
const LISTED = BLOCKS_LISTED * BLOCK_SIZE + 4;

/** What another thread needs to look at the same rows. */
export interface ArenaShare {
  readonly module: object;
  readonly memory: WasmMemory;
  /** Numbers that were asked for. */
  readonly length: number;
  readonly threads: number;
}

/** The bytes of a memory as an ordinary buffer, as which numbers are copied fastest. */
export type BytesOf = (memory: WasmMemory) => ArrayBuffer;

/** A memory for rows, and for what each thread finds about one of them. */
export function createArena(module: object, length: number, threads: number): ArenaShare {
  const pages = Math.ceil(layout(length, threads).end / PAGE_BYTES);
  return {
    module,
    memory: new Memory({ initial: pages, maximum: pages, shared: threads > 1 }),
    length,
    threads,
  };
}

/** One thread's view of such a memory: an instance of the module over it, the rows, and room of the thread's own. */
export class Arena {
  readonly share: ArenaShare;
  readonly reductions: BlockReductions;
  readonly rows: Float32Array<ArrayBuffer>;
  /** For a number or two of each block. */
  readonly results: Float32Array<ArrayBuffer>;
  /** For the tokens of a part. */
  readonly ids: Int32Array<ArrayBuffer>;
  readonly weights: Float64Array<ArrayBuffer>;

  constructor(share: ArenaShare, thread: number, bytesOf: BytesOf) {
    const { module, memory, length, threads } = share;
    const { exports } = new Instance(module, { memory: { of: memory } });
    const { scratch, rows } = layout(length, threads);
    const { ids, weights, results, size } = scratchLayout(length);
    const buffer = bytesOf(memory);
    const own = scratch + thread * size;
    if (thread === 0) writeTables(buffer);
    this.share = share;
    // The module is the kernel's, so that its exports are known.
    this.reductions = exports as BlockReductions;
    this.ids = new Int32Array(buffer, own + ids, LISTED);
    this.weights = new Float64Array(buffer, own + weights, LISTED);
    this.results = new Float32Array(buffer, own + results, RESULTS * Math.ceil(length / BLOCK_SIZE));
    this.rows = new Float32Array(buffer, rows, length);
  }
}

/** Where things lie, in bytes. */
function layout(length: number, threads: number) {
  const scratch = aligned(TABLE_BYTES);
  const rows = scratch + threads * scratchLayout(length).size;
  return { scratch, rows, end: rows + 4 * length };
}

/** The same within one thread's room. */
function scratchLayout(length: number) {
  const weights = aligned(4 * LISTED);
  const results = weights + aligned(8 * LISTED);
  const size = results + aligned(4 * RESULTS * Math.ceil(length / BLOCK_SIZE));
  return { ids: 0, weights, results, size };
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}

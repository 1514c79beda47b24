import { bytesOfUnits } from '@continuo/shared/binary-text.ts';
import { BLOCK_SIZE } from '../../model/sparse-logits.ts';
import { KERNEL_MODULE } from './block-kernel-binary.ts';

/** Blocks per call of the WebAssembly functions, so that rows of any length need the same scratch memory. */
const MAX_BLOCKS = 64;
const MAX_LOGITS = MAX_BLOCKS * BLOCK_SIZE;

const PAGE_BYTES = 65_536;
/** Page 0 holds the kernel's constants. Each thread's scratch follows, then the rows. */
const CONSTANT_PAGES = 1;
const SCRATCH_PAGES = 2;

/** The functions of assembly/block-kernel.ts. `row`, `results`, `maxima` and `ids` are byte addresses. */
interface BlockFunctions {
  maxima(row: number, blocks: number, results: number): number;
  sums(row: number, blocks: number, results: number, highest: number, coldness: number): void;
  list(row: number, blocks: number, maxima: number, cut: number, first: number, ids: number): number;
  deviations(row: number, blocks: number, results: number, highest: number): void;
}

/** Memory of WebAssembly; can be sent to other threads. */
interface WasmMemory {
  readonly buffer: SharedArrayBuffer;
}

/** The part of WebAssembly's JavaScript interface used here; TypeScript declares it for browsers only. */
interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: object };
  /** Sizes in pages of 64 KiB. */
  readonly Memory: new (size: {
    readonly initial: number;
    readonly maximum: number;
    readonly shared: true;
  }) => WasmMemory;
}

const { Module, Instance, Memory } = (globalThis as unknown as { readonly WebAssembly: WebAssemblyApi })
  .WebAssembly;

const blockKernel = new Module(bytesOfUnits(atob(KERNEL_MODULE)));

/** An arena as another thread needs it. */
export interface ArenaShare {
  readonly memory: WasmMemory;
  /** Logits in all rows together. */
  readonly length: number;
  readonly threads: number;
}

/** Returns the same bytes as an ArrayBuffer, which V8 copies four times faster than shared ones. */
export type ViewMemory = (memory: SharedArrayBuffer) => ArrayBuffer;

export function createArenaMemory(length: number, threads: number): ArenaShare {
  const pages = CONSTANT_PAGES + SCRATCH_PAGES * threads + Math.ceil((4 * length) / PAGE_BYTES);
  return { memory: new Memory({ initial: pages, maximum: pages, shared: true }), length, threads };
}

/** One thread's view of the memory that holds rows: a block kernel and scratch of its own. */
export class Arena {
  readonly share: ArenaShare;
  readonly functions: BlockFunctions;
  readonly rows: Float32Array<ArrayBuffer>;
  /** MAX_BLOCKS blocks of a row that lies elsewhere, or that ends within a block. */
  readonly input: Float32Array;
  /** MAX_LOGITS ids, and three that `list` may write after them. */
  readonly ids: Int32Array;
  /** Up to two float32 per block. */
  readonly results: Float32Array;
  readonly wideResults: Float64Array;

  /** @param thread 0 … share.threads − 1 */
  constructor(share: ArenaShare, thread: number, viewMemory: ViewMemory) {
    const { memory, length, threads } = share;
    const buffer = viewMemory(memory.buffer);
    const scratch = PAGE_BYTES * (CONSTANT_PAGES + SCRATCH_PAGES * thread);
    const ids = scratch + 4 * MAX_LOGITS;
    const results = ids + 4 * (MAX_LOGITS + 4);
    this.share = share;
    // The exports are those of assembly/block-kernel.ts; a test rebuilds the binary from it.
    this.functions = new Instance(blockKernel, { env: { memory } }).exports as BlockFunctions;
    this.input = new Float32Array(buffer, scratch, MAX_LOGITS);
    this.ids = new Int32Array(buffer, ids, MAX_LOGITS + 4);
    this.results = new Float32Array(buffer, results, 2 * MAX_BLOCKS);
    this.wideResults = new Float64Array(buffer, results, MAX_BLOCKS);
    this.rows = new Float32Array(buffer, PAGE_BYTES * (CONSTANT_PAGES + SCRATCH_PAGES * threads), length);
  }

  /**
   * Visits a row in parts of at most MAX_BLOCKS blocks. Copies a part to scratch memory if the row lies
   * elsewhere, or if the part ends within a block; −∞ then fills the block.
   */
  forEachPart(row: Float32Array, visit: (address: number, blocks: number, firstBlock: number) => void): void {
    const isHere = row.buffer === this.rows.buffer;
    for (let first = 0; first < row.length; first += MAX_LOGITS) {
      const length = Math.min(MAX_LOGITS, row.length - first);
      const blocks = Math.ceil(length / BLOCK_SIZE);
      let address = row.byteOffset + 4 * first;
      if (!isHere || length < blocks * BLOCK_SIZE) {
        this.input.set(row.subarray(first, first + length));
        this.input.fill(Number.NEGATIVE_INFINITY, length, blocks * BLOCK_SIZE);
        address = this.input.byteOffset;
      }
      visit(address, blocks, first / BLOCK_SIZE);
    }
  }
}

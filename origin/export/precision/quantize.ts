import type { BlockRows } from '../checkpoint/checkpoint.ts';
import { KERNEL_MODULE } from './quantize-kernel-binary.ts';

/** Block size of both precisions. */
export const BLOCK_SIZE = 32;

/** The functions of assembly/quantize-kernel.ts. All arguments but `blocks` are byte addresses. */
interface KernelFunctions {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  quantize8(values: number, blocks: number, levels: number, scales: number): number;
  quantize4(values: number, blocks: number, levels: number, scales: number): number;
}

/** The part of WebAssembly's JavaScript interface used here; TypeScript declares it for browsers only. */
interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: KernelFunctions };
}

const { Module, Instance } = (globalThis as unknown as { readonly WebAssembly: WebAssemblyApi }).WebAssembly;

const PAGE_BYTES = 65_536;
/** Page 0 holds the kernel's constants. */
const FIRST_PAGE = 1;
/** Blocks of one call: 4 MiB of values. */
const MAX_BLOCKS = 2 ** 15;

/**
 * Quantizes floats in blocks of 32, symmetrically. 8 bits: scale = max |x| / 127. 4 bits: several scales are
 * tried, and the one of least squared error is kept. A scale follows from the levels before it: Σ x·q / Σ q².
 */
export class Quantizer {
  readonly #functions: KernelFunctions;

  constructor() {
    const pages = Math.ceil((MAX_BLOCKS * (BLOCK_SIZE * 5 + 4)) / PAGE_BYTES);
    this.#functions = new Instance(new Module(Buffer.from(KERNEL_MODULE, 'base64')), {}).exports;
    this.#functions.memory.grow(pages);
  }

  /**
   * @param values [rows, columns]; an incomplete last block of a row is filled with zeros
   * @throws RangeError if a value is NaN or infinite
   */
  quantize(values: Float32Array, columns: number, bits: 4 | 8): BlockRows {
    const across = Math.ceil(columns / BLOCK_SIZE);
    const padded = columns % BLOCK_SIZE === 0 ? values : padRows(values, columns, across * BLOCK_SIZE);
    const blocks = padded.length / BLOCK_SIZE;
    const levelBytes = (BLOCK_SIZE * bits) / 8;
    const levels = new Uint8Array(blocks * levelBytes);
    const scales = new Float32Array(blocks);
    for (let first = 0; first < blocks; first += MAX_BLOCKS) {
      const part = padded.subarray(first * BLOCK_SIZE, (first + MAX_BLOCKS) * BLOCK_SIZE);
      const result = this.#quantizePart(part, bits);
      levels.set(result.levels, first * levelBytes);
      scales.set(result.scales, first);
    }
    return { levels, scales };
  }

  /** Views that are valid until the next call. */
  #quantizePart(values: Float32Array, bits: 4 | 8): { levels: Uint8Array; scales: Float32Array } {
    const { memory, quantize4, quantize8 } = this.#functions;
    const blocks = values.length / BLOCK_SIZE;
    const at = FIRST_PAGE * PAGE_BYTES;
    const scalesAt = at + 4 * MAX_BLOCKS * BLOCK_SIZE;
    const levelsAt = scalesAt + 4 * MAX_BLOCKS;
    new Float32Array(memory.buffer, at, values.length).set(values);
    const run = bits === 8 ? quantize8 : quantize4;
    if (run(at, blocks, levelsAt, scalesAt) === 0) throw new RangeError('a value is not finite');
    return {
      levels: new Uint8Array(memory.buffer, levelsAt, (blocks * BLOCK_SIZE * bits) / 8),
      scales: new Float32Array(memory.buffer, scalesAt, blocks),
    };
  }
}

function padRows(values: Float32Array, columns: number, width: number): Float32Array {
  const rows = values.length / columns;
  const result = new Float32Array(rows * width);
  for (let row = 0; row < rows; row++) {
    result.set(values.subarray(row * columns, (row + 1) * columns), row * width);
  }
  return result;
}

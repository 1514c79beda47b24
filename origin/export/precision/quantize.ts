import type { BlockFormat, BlockRows } from '../checkpoint/checkpoint.ts';
import { KERNEL_MODULE } from './quantize-kernel-binary.ts';

/** The functions of assembly/quantize-kernel.ts. */
interface KernelFunctions {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  readonly quantize8: QuantizeFunction;
  readonly quantize4: QuantizeFunction;
}

/** `blockBytes` is the size of a block's values. The others but `blocks` are byte addresses. */
type QuantizeFunction = (
  values: number,
  blocks: number,
  blockBytes: number,
  levels: number,
  scales: number,
) => number;

/** The part of WebAssembly's JavaScript interface used here; TypeScript declares it for browsers only. */
interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: KernelFunctions };
}

const { Module, Instance } = (globalThis as unknown as { readonly WebAssembly: WebAssemblyApi }).WebAssembly;

const PAGE_BYTES = 65_536;
/** Page 0 holds the kernel's constants. */
const FIRST_PAGE = 1;
/** Values of one call: 4 MiB. */
const MAX_VALUES = 2 ** 20;
/** Smallest block; larger ones are multiples of it. */
export const MIN_BLOCK_SIZE = 32;

/**
 * Quantizes floats in blocks, symmetrically. 8 bits: scale = max |x| / 127. 4 bits: several scales are tried,
 * and the one of least squared error is kept. A scale follows from the levels before it: Σ x·q / Σ q².
 */
export class Quantizer {
  readonly #functions: KernelFunctions;

  constructor() {
    const pages = Math.ceil((MAX_VALUES * 5 + (MAX_VALUES / MIN_BLOCK_SIZE) * 4) / PAGE_BYTES);
    this.#functions = new Instance(new Module(Buffer.from(KERNEL_MODULE, 'base64')), {}).exports;
    this.#functions.memory.grow(pages);
  }

  /**
   * @param values [rows, columns]; an incomplete last block of a row is filled with zeros
   * @param format blocks of 32 · 2ⁿ values; if they are rows, their scales are repeated
   * @throws RangeError if a value is NaN or infinite
   */
  quantize(values: Float32Array, columns: number, format: BlockFormat): BlockRows {
    if (format.isRow) return this.#quantizeRows(values, columns, format);
    const { bits, blockSize } = format;
    const width = Math.ceil(columns / blockSize) * blockSize;
    const padded = columns === width ? values : padRows(values, columns, width);
    const levels = new Uint8Array((padded.length * bits) / 8);
    const scales = new Float32Array(padded.length / blockSize);
    const part = MAX_VALUES - (MAX_VALUES % blockSize);
    for (let first = 0; first < padded.length; first += part) {
      const result = this.#quantizePart(padded.subarray(first, first + part), format);
      levels.set(result.levels, (first * bits) / 8);
      scales.set(result.scales, first / blockSize);
    }
    return { levels, scales };
  }

  #quantizeRows(values: Float32Array, columns: number, { bits, blockSize }: BlockFormat): BlockRows {
    const { levels, scales } = this.quantize(values, columns, { bits, blockSize: columns });
    const blocks = columns / blockSize;
    const repeated = new Float32Array(scales.length * blocks);
    for (const [row, scale] of scales.entries()) repeated.fill(scale, row * blocks, (row + 1) * blocks);
    return { levels, scales: repeated };
  }

  /** Views that are valid until the next call. */
  #quantizePart(
    values: Float32Array,
    { bits, blockSize }: BlockFormat,
  ): { levels: Uint8Array; scales: Float32Array } {
    const { memory, quantize4, quantize8 } = this.#functions;
    const blocks = values.length / blockSize;
    const at = FIRST_PAGE * PAGE_BYTES;
    const scalesAt = at + 4 * MAX_VALUES;
    const levelsAt = scalesAt + (4 * MAX_VALUES) / MIN_BLOCK_SIZE;
    new Float32Array(memory.buffer, at, values.length).set(values);
    const run = bits === 8 ? quantize8 : quantize4;
    if (run(at, blocks, 4 * blockSize, levelsAt, scalesAt) === 0)
      throw new RangeError('a value is not finite');
    return {
      levels: new Uint8Array(memory.buffer, levelsAt, (values.length * bits) / 8),
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

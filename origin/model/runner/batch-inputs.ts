import type { DecodeBatch, PrefillChunk } from '../model-runner.ts';

/**
 * The integer inputs of a run, in buffers that are reused between runs. Pure: no ONNX Runtime here. Each buffer has its own
 * ArrayBuffer, so its address never changes.
 */

/**
 * The width of a decode mask is the longest row, rounded up to this many positions. Zeros after a row's length do not change
 * its result, and a width that rarely changes allows the binding to be reused.
 */
export const MASK_BLOCK = 256;

export function allocateInt64(length: number): BigInt64Array<ArrayBuffer> {
  return new BigInt64Array(new ArrayBuffer(8 * Math.max(1, length)));
}

/** Ragged decode: one token per row, rows of different lengths. */
export class DecodeInputs {
  /** [rows, 1] */
  readonly tokens: BigInt64Array<ArrayBuffer>;
  /** [rows, 1] */
  readonly positions: BigInt64Array<ArrayBuffer>;
  /** [rows, maskWidth]: row r holds positions[r] + 1 ones, then zeros. */
  readonly mask: BigInt64Array<ArrayBuffer>;
  /** 0 … rows − 1, because the logits of every row are needed. */
  readonly logitsIndex: BigInt64Array<ArrayBuffer>;
  readonly #contextLength: number;
  /** Number of ones in each row of the mask. */
  readonly #ones: Int32Array;
  #maskWidth = 0;

  constructor(slots: number, contextLength: number) {
    this.tokens = allocateInt64(slots);
    this.positions = allocateInt64(slots);
    this.mask = allocateInt64(slots * contextLength);
    this.logitsIndex = allocateInt64(slots);
    for (let row = 0; row < slots; row++) this.logitsIndex[row] = BigInt(row);
    this.#contextLength = contextLength;
    this.#ones = new Int32Array(slots);
  }

  get maskWidth(): number {
    return this.#maskWidth;
  }

  fill({ rows, tokens, positions }: DecodeBatch): void {
    let longest = 0;
    for (let row = 0; row < rows; row++) longest = Math.max(longest, positions[row]! + 1);
    const width = Math.min(this.#contextLength, Math.ceil(longest / MASK_BLOCK) * MASK_BLOCK);
    if (width !== this.#maskWidth) {
      this.mask.fill(0n);
      this.#ones.fill(0);
      this.#maskWidth = width;
    }
    for (let row = 0; row < rows; row++) {
      this.tokens[row] = BigInt(tokens[row]!);
      this.positions[row] = BigInt(positions[row]!);
      this.#setOnes(row, positions[row]! + 1);
    }
  }

  #setOnes(row: number, length: number): void {
    const start = row * this.#maskWidth;
    const before = this.#ones[row]!;
    if (length > before) this.mask.fill(1n, start + before, start + length);
    else this.mask.fill(0n, start + length, start + before);
    this.#ones[row] = length;
  }
}

/** One chunk of one prompt: a batch of one row. */
export class PrefillInputs {
  /** [1, tokens] */
  readonly tokens: BigInt64Array<ArrayBuffer>;
  /** [1, tokens] */
  readonly positions: BigInt64Array<ArrayBuffer>;
  /** [1, start + tokens], all ones. */
  readonly mask: BigInt64Array<ArrayBuffer>;
  /** [logitsAt + 1]: the last index twice, for runs that must not have a single row. */
  readonly logitsIndex: BigInt64Array<ArrayBuffer>;

  constructor(prefillChunk: number, contextLength: number) {
    this.tokens = allocateInt64(prefillChunk);
    this.positions = allocateInt64(prefillChunk);
    this.mask = allocateInt64(contextLength).fill(1n);
    this.logitsIndex = allocateInt64(prefillChunk + 1);
  }

  fill({ start, tokens, logitsAt }: PrefillChunk): void {
    for (let i = 0; i < tokens.length; i++) {
      this.tokens[i] = BigInt(tokens[i]!);
      this.positions[i] = BigInt(start + i);
    }
    for (let i = 0; i < logitsAt.length; i++) this.logitsIndex[i] = BigInt(logitsAt[i]!);
    this.logitsIndex[logitsAt.length] = BigInt(logitsAt.at(-1) ?? 0);
  }
}

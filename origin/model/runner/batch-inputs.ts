import type { DecodeBatch, PrefillChunk } from '../model-runner.ts';

/**
 * The integer inputs of a run, in buffers that are reused between runs. Pure: no ONNX Runtime here. Each buffer has its own
 * ArrayBuffer, so its address never changes.
 */

/** A value that rarely changes keeps the choice of kernels the same. */
export const LENGTH_BLOCK = 256;

/** Returns the total length of a decode run: the longest row, rounded up. It does not change any row. */
export function totalLengthOf(positions: Int32Array, contextLength: number): number {
  const longest = positions.reduce((most, position) => Math.max(most, position + 1), 0);
  return Math.min(contextLength, Math.ceil(longest / LENGTH_BLOCK) * LENGTH_BLOCK);
}

export function allocateInt64(length: number): BigInt64Array<ArrayBuffer> {
  return new BigInt64Array(new ArrayBuffer(8 * Math.max(1, length)));
}

const allocateInt32 = (length: number) => new Int32Array(new ArrayBuffer(4 * length));

/** Ragged decode: one token per row, rows of different lengths. */
export class DecodeInputs {
  /** [rows, 1] */
  readonly tokens: BigInt64Array<ArrayBuffer>;
  /** [rows, 1] */
  readonly positions: BigInt64Array<ArrayBuffer>;
  /** [rows]: the last position of each row. */
  readonly lastPositions: Int32Array<ArrayBuffer>;
  /** []: at least as many positions as the longest row has. */
  readonly totalLength = allocateInt32(1);
  /** 0 … rows − 1, because the logits of every row are needed. */
  readonly logitsIndex: BigInt64Array<ArrayBuffer>;
  readonly #contextLength: number;

  constructor(slots: number, contextLength: number) {
    this.tokens = allocateInt64(slots);
    this.positions = allocateInt64(slots);
    this.lastPositions = allocateInt32(slots);
    this.logitsIndex = allocateInt64(slots);
    for (let row = 0; row < slots; row++) this.logitsIndex[row] = BigInt(row);
    this.#contextLength = contextLength;
  }

  fill({ rows, tokens, positions }: DecodeBatch): void {
    for (let row = 0; row < rows; row++) {
      const position = positions[row]!;
      this.tokens[row] = BigInt(tokens[row]!);
      this.positions[row] = BigInt(position);
      this.lastPositions[row] = position;
    }
    this.totalLength[0] = totalLengthOf(positions.subarray(0, rows), this.#contextLength);
  }
}

/** One chunk of one prompt: a batch of one row. */
export class PrefillInputs {
  /** [1, tokens] */
  readonly tokens: BigInt64Array<ArrayBuffer>;
  /** [1, tokens] */
  readonly positions: BigInt64Array<ArrayBuffer>;
  /** [1]: the last position of the chunk. */
  readonly lastPositions = allocateInt32(1);
  /** []: positions up to the end of the chunk. */
  readonly totalLength = allocateInt32(1);
  /** [logitsAt + 1]: the last index twice, for runs that must not have a single row. */
  readonly logitsIndex: BigInt64Array<ArrayBuffer>;

  constructor(prefillChunk: number) {
    this.tokens = allocateInt64(prefillChunk);
    this.positions = allocateInt64(prefillChunk);
    this.logitsIndex = allocateInt64(prefillChunk + 1);
  }

  fill({ start, tokens, logitsAt }: PrefillChunk): void {
    for (let i = 0; i < tokens.length; i++) {
      this.tokens[i] = BigInt(tokens[i]!);
      this.positions[i] = BigInt(start + i);
    }
    this.totalLength[0] = start + tokens.length;
    this.lastPositions[0] = start + tokens.length - 1;
    for (let i = 0; i < logitsAt.length; i++) this.logitsIndex[i] = BigInt(logitsAt[i]!);
    this.logitsIndex[logitsAt.length] = BigInt(logitsAt.at(-1) ?? 0);
  }
}

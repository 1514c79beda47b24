import type { DecodeBatch, PrefillChunk } from '../model-runner.ts';

/**
 * The integer inputs of a run, in buffers that are reused between runs. Pure: no ONNX Runtime here. Each
 * buffer has its own ArrayBuffer, so its address never changes.
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

/** The inputs of a batch of sequences, with the same number of tokens each. */
export class BatchInputs {
  /** [sequences, tokens] */
  readonly tokens: BigInt64Array<ArrayBuffer>;
  /** [sequences, tokens] */
  readonly positions: BigInt64Array<ArrayBuffer>;
  /** [sequences]: the last position of each. */
  readonly lastPositions: Int32Array<ArrayBuffer>;
  /** []: at least as many positions as the longest sequence has. */
  readonly totalLength = allocateInt32(1);
  /** Indices of the tokens whose logits are needed. */
  readonly logitsIndex: BigInt64Array<ArrayBuffer>;

  /** Allocates room for these numbers; `tokens` counts those of all sequences. */
  constructor(sequences: number, tokens: number, logits: number) {
    this.tokens = allocateInt64(tokens);
    this.positions = allocateInt64(tokens);
    this.lastPositions = allocateInt32(sequences);
    this.logitsIndex = allocateInt64(logits);
  }
}

/** Ragged decode: one token per row, rows of different lengths. The logits of every row are needed. */
export class DecodeInputs extends BatchInputs {
  readonly #contextLength: number;

  constructor(slots: number, contextLength: number) {
    super(slots, slots, slots);
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
export class PrefillInputs extends BatchInputs {
  constructor(prefillChunk: number) {
    super(1, prefillChunk, prefillChunk + 1);
  }

  fill({ start, tokens, logitsAt }: PrefillChunk): void {
    for (let i = 0; i < tokens.length; i++) {
      this.tokens[i] = BigInt(tokens[i]!);
      this.positions[i] = BigInt(start + i);
    }
    this.totalLength[0] = start + tokens.length;
    this.lastPositions[0] = start + tokens.length - 1;
    for (let i = 0; i < logitsAt.length; i++) this.logitsIndex[i] = BigInt(logitsAt[i]!);
    // The last one twice, for runs that must not have a single row.
    this.logitsIndex[logitsAt.length] = BigInt(logitsAt.at(-1) ?? 0);
  }
}

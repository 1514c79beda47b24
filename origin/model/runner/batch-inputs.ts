import type { DecodeBatch, PrefillChunk, SlotToken } from '../model-runner.ts';

/** The integer inputs of a run, in memory that is reused between runs. Pure: no ONNX Runtime here. */

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

/** A part of some memory, whose address never changes. */
export interface MemoryPart {
  readonly buffer: ArrayBuffer;
  readonly byteOffset: number;
}

type Allocate = (bytes: number) => MemoryPart;

const ofItsOwn: Allocate = (bytes) => ({ buffer: new ArrayBuffer(bytes), byteOffset: 0 });

/** Returns the bytes that inputs allocate. */
export const bytesOfInputs = (sequences: number, tokens: number, logits: number): number =>
  8 * (2 * tokens + logits) + 4 * sequences;

/** The inputs of a batch of sequences, with the same number of tokens each. */
export class BatchInputs {
  /** [sequences, tokens] */
  readonly tokens: BigInt64Array<ArrayBuffer>;
  /** [sequences, tokens] */
  readonly positions: BigInt64Array<ArrayBuffer>;
  /** [sequences]: the last position of each. */
  readonly lastPositions: Int32Array<ArrayBuffer>;
  /** []: at least as many positions as the longest sequence has. */
  readonly totalLength = new Int32Array(new ArrayBuffer(4));
  /** Indices of the tokens whose logits are needed. */
  readonly logitsIndex: BigInt64Array<ArrayBuffer>;

  /** Allocates room for these numbers; `tokens` counts those of all sequences. */
  constructor(sequences: number, tokens: number, logits: number, allocate = ofItsOwn) {
    const longs = (length: number) => {
      const { buffer, byteOffset } = allocate(8 * length);
      return new BigInt64Array(buffer, byteOffset, length);
    };
    this.tokens = longs(tokens);
    this.positions = longs(tokens);
    this.logitsIndex = longs(logits);
    const { buffer, byteOffset } = allocate(4 * sequences);
    this.lastPositions = new Int32Array(buffer, byteOffset, sequences);
  }
}

/** Ragged decode: one token per row, rows of different lengths. The logits of every row are needed. */
export class DecodeInputs extends BatchInputs {
  readonly #contextLength: number;

  constructor(slots: number, contextLength: number, allocate?: Allocate) {
    super(slots, slots, slots, allocate);
    for (let row = 0; row < slots; row++) this.logitsIndex[row] = BigInt(row);
    this.#contextLength = contextLength;
  }

  fill({ rows, tokens, positions }: DecodeBatch): void {
    for (let row = 0; row < rows; row++)
      this.fillRow({ slot: row, token: tokens[row]!, position: positions[row]! });
    this.totalLength[0] = totalLengthOf(positions.subarray(0, rows), this.#contextLength);
  }

  fillRow({ slot, token, position }: SlotToken): void {
    this.tokens[slot] = BigInt(token);
    this.positions[slot] = BigInt(position);
    this.lastPositions[slot] = position;
  }
}

/** One chunk of one prompt, or several whole prompts, each padded at its end to the longest. */
export class PrefillInputs extends BatchInputs {
  /** @param tokens most tokens of a run, padding included */
  constructor(slots: number, tokens: number, allocate?: Allocate) {
    super(slots, tokens, tokens + 1, allocate);
  }

  /** Returns the dimensions of the run, and the number of logits that are needed. */
  fill(chunks: readonly PrefillChunk[]): { sequences: number; length: number; logits: number } {
    const length = chunks.reduce((most, { tokens }) => Math.max(most, tokens.length), 0);
    let logits = 0;
    let total = 0;
    for (const [row, { start, tokens, logitsAt }] of chunks.entries()) {
      const first = row * length;
      for (let at = 0; at < length; at++) {
        this.tokens[first + at] = BigInt(tokens[at] ?? 0);
        this.positions[first + at] = BigInt(start + at);
      }
      this.lastPositions[row] = start + tokens.length - 1;
      for (const at of logitsAt) this.logitsIndex[logits++] = BigInt(first + at);
      total = Math.max(total, start + length);
    }
    this.totalLength[0] = total;
    // The last one twice, for runs that must not have a single row.
    this.logitsIndex[logits] = this.logitsIndex[logits - 1] ?? 0n;
    return { sequences: chunks.length, length, logits };
  }
}

/** What the engine knows of a model: rows of tokens in, logits out. Implemented over ONNX Runtime in ort-runner.ts. */

export interface ModelShape {
  readonly vocabularySize: number;
  /** Positions one slot can hold. */
  readonly contextLength: number;
  /** Rows of the KV cache; slots are numbered 0 … slots − 1. */
  readonly slots: number;
  /**
   * Prefill runs cover [k·chunk, (k+1)·chunk) of a sequence and never straddle a multiple of it: the same split gives
   * the same bits, so that logits do not depend on the prefix cache or on company. Runs over drafted tokens, which
   * exist by configuration only, begin anywhere; no run is longer than this.
   */
  readonly prefillChunk: number;
  /**
   * Rows a decode run should have at least, some of them idle: a row that is alone in a run may meet another kernel,
   * which rounds otherwise. Never more than there are slots.
   */
  readonly leastRows: number;
}

/** One decode step: row r is the sequence in slot `firstSlot + r`. */
export interface DecodeBatch {
  readonly firstSlot: number;
  readonly rows: number;
  /** The token each row feeds; at least `rows` long. */
  readonly tokens: Int32Array;
  /** The position each token is written at = tokens already in that slot. */
  readonly positions: Int32Array;
}

/** Vectors that stand in the place of tokens: what an encoder has made of an image. */
export interface PlacedVectors {
  /** Position of the first. */
  readonly at: number;
  readonly count: number;
  /** [count, width of the token vectors] */
  readonly vectors: Float32Array;
}

/** What of them stands in [start, end), with positions counted from `start`. */
export function placedWithin(placed: readonly PlacedVectors[], start: number, end: number): PlacedVectors[] {
  return placed.flatMap(({ at, count, vectors }) => {
    const first = Math.max(at, start);
    const last = Math.min(at + count, end);
    if (first >= last) return [];
    const width = vectors.length / count;
    const within = vectors.subarray((first - at) * width, (last - at) * width);
    return [{ at: first - start, count: last - first, vectors: within }];
  });
}

export interface PrefillChunk {
  readonly slot: number;
  /** Position of the first token; positions before it are already in the slot's KV. */
  readonly start: number;
  readonly tokens: Int32Array;
  /** Indices into `tokens` whose logits are wanted, ascending; empty = none. */
  readonly logitsAt: Int32Array;
  /** Images in the chunk, by index into `tokens`, which hold any valid id there; for models that see. */
  readonly images?: readonly PlacedVectors[];
}

/** Thrown by `prefill` when its signal was aborted while it ran. */
export class RunTerminated extends Error {
  override readonly name = 'RunTerminated';
}

export interface ModelRunner {
  readonly shape: ModelShape;
  /**
   * Logits of row r at [r · vocabularySize, (r + 1) · vocabularySize), raw float32, valid until the next call of the
   * runner. In runs of `leastRows` or more, every row's bits are its own, whatever the others are.
   */
  decode(batch: DecodeBatch): Float32Array | Promise<Float32Array>;
  /** Logits of logitsAt[i] at row i, valid until the next call. The event loop turns while it runs. */
  prefill(chunk: PrefillChunk, signal: AbortSignal): Promise<Float32Array>;
  /** Copies the KV of positions [0, length) from one slot to another. */
  copy(from: number, to: number, length: number): void;
  dispose(): void;
}

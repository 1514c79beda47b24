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

export interface PrefillChunk {
  readonly slot: number;
  /** Position of the first token; positions before it are already in the slot's KV. */
  readonly start: number;
  readonly tokens: Int32Array;
  /** Indices into `tokens` whose logits are wanted, ascending; empty = none. */
  readonly logitsAt: Int32Array;
}

/** Thrown by `prefill` when its signal was aborted while it ran. */
export class RunTerminated extends Error {
  override readonly name = 'RunTerminated';
}

export interface ModelRunner {
  readonly shape: ModelShape;
  /**
   * Logits of row r at [r · vocabularySize, (r + 1) · vocabularySize), raw float32, valid until the next call of the
   * runner. Every row's bits are those it would have alone.
   */
  decode(batch: DecodeBatch): Float32Array | Promise<Float32Array>;
  /** Logits of logitsAt[i] at row i, valid until the next call. The event loop turns while it runs. */
  prefill(chunk: PrefillChunk, signal: AbortSignal): Promise<Float32Array>;
  /** Copies the KV of positions [0, length) from one slot to another. */
  copy(from: number, to: number, length: number): void;
  dispose(): void;
}

import type { DrawnToken, DrawRequest } from './device-draws.ts';
import type { SparseLogits } from './sparse-logits.ts';

/** The engine's interface to a model: rows of tokens in, logits out. runner/ has it over ONNX Runtime. */

export interface ModelShape {
  readonly vocabularySize: number;
  /** Positions of one slot. */
  readonly contextLength: number;
  /** Number of slots of the KV cache: 0 … slots − 1. */
  readonly slots: number;
  /**
   * Prefill runs cover at most [k·chunk, (k+1)·chunk) of a sequence. The same split gives the same bits, so
   * logits do not depend on the prefix cache or on other sequences.
   */
  readonly prefillChunk: number;
  /**
   * Chunks of the grid that one prefill run may cover with the same bits as a run each, or on a card with
   * nearly the same logits. A single position after them needs a run of its own, because a single row may use
   * a kernel that rounds differently. Absent = 1.
   */
  readonly maxPrefillChunks?: number;
  /** Rows of logits that one prefill run returns at most. Absent = as many as it has positions. */
  readonly maxPromptLogits?: number;
  /** Rows of logits that one `score` scores at most. */
  readonly maxScored?: number;
  /** Whether `prefillTogether` gives each prompt the logits of a run of its own. Absent = false. */
  readonly joinsPrompts?: boolean;
  /**
   * Minimum rows of a decode run, idle ones included, because a single row may use a kernel that rounds
   * differently. At most the number of slots.
   */
  readonly minRows: number;
  /**
   * The rows of a decode run are a multiple of this, idle ones included, because a row that is left over may
   * use such a kernel. Divides the number of slots. Absent = 1.
   */
  readonly rowMultiple?: number;
  /** Positions whose KV is copied from slot to slot without interruption. Absent = 32 chunks. */
  readonly maxCopied?: number;
}

/** Returns the rows that a run computes for as many wanted ones, so that none depends on their number. */
export function computedRows(
  { minRows, rowMultiple = 1 }: Pick<ModelShape, 'minRows' | 'rowMultiple'>,
  wanted: number,
): number {
  return rowMultiple * Math.ceil(Math.max(wanted, minRows) / rowMultiple);
}

/** A token that a decode run computes. */
export interface SlotToken {
  readonly slot: number;
  readonly token: number;
  /** Equal to the number of tokens already in the slot. */
  readonly position: number;
}

/** One decode step: row r is the sequence in slot `firstSlot + r`. */
export interface DecodeBatch {
  readonly firstSlot: number;
  readonly rows: number;
  /** The input token of each row; at least `rows` long. */
  readonly tokens: Int32Array;
  /** The position of each token, equal to the number of tokens already in its slot. */
  readonly positions: Int32Array;
  /**
   * By row: 1 / temperature of the sampler, if it can read a sparse row; null = it needs the whole row.
   * Absent = all do. Only for runners with `sparse`.
   */
  readonly coldness?: readonly (number | null)[] | undefined;
  /**
   * By row: the token that the device is to draw; null = a sampler draws it. Only for runners with `sparse`
   * that draw.
   */
  readonly draws?: readonly (DrawRequest | null)[] | undefined;
  /** By row: 1 = it is of no sequence, and nothing of it is needed. Absent = all are of sequences. */
  readonly idle?: Uint8Array | undefined;
  /**
   * The same sequences are likely to decode in the next run. So a device may begin it with the tokens that it
   * draws in this one. Absent = false.
   */
  readonly continues?: boolean | undefined;
  /** Rows that join the next run if it begins early. They are not in this one. Absent = none. */
  readonly joining?: readonly SlotToken[] | undefined;
}

/** What runs draw from rows that stay on the device. */
export interface DrawnRows {
  /** Returns what the last run has drawn from a row; null if a sampler must draw. */
  drawn(row: Float32Array): DrawnToken | null;
}

/** Logits of decode runs that stay on the device until a sampler asks for them. */
export interface SparseRows {
  readonly logits: SparseLogits;
  /** Null or absent = runs take no `draws`. */
  readonly draws?: DrawnRows | null;
  /** Brings the blocks that samplers have asked for. Returns false if they have asked for none. */
  fetchWanted(): boolean;
  /** Brings the rest of a row. Does nothing if it is whole, or no row of the last run. */
  complete(row: Float32Array): void;
}

/** Vectors that replace tokens: an encoded image. */
export interface EmbeddedImage {
  /** Position of the first. */
  readonly at: number;
  readonly count: number;
  /** [count, width of the token vectors] */
  readonly vectors: Float32Array;
}

/** Returns the parts of images in [start, end), with positions relative to `start`. */
export function imagesWithin(images: readonly EmbeddedImage[], start: number, end: number): EmbeddedImage[] {
  return images.flatMap(({ at, count, vectors }) => {
    const first = Math.max(at, start);
    const last = Math.min(at + count, end);
    if (first >= last) return [];
    const width = vectors.length / count;
    const within = vectors.subarray((first - at) * width, (last - at) * width);
    return [{ at: first - start, count: last - first, vectors: within }];
  });
}

/** One chunk of the grid, or up to `maxPrefillChunks` of them. */
export interface PrefillChunk {
  readonly slot: number;
  /** Position of the first token. Earlier positions are already in the slot's KV. */
  readonly start: number;
  readonly tokens: Int32Array;
  /** Ascending indices into `tokens` whose logits are needed; empty = none. */
  readonly logitsAt: Int32Array;
  /** Images in the chunk by index into `tokens`, which hold any valid id there. */
  readonly images?: readonly EmbeddedImage[];
}

/** The logprob of a token, and how likely others were in its place. */
export interface TokenScore {
  readonly logprob: number;
  /** Position of the token by its logit, from 1; of equal logits, lower ids first. */
  readonly rank: number;
  /** [id, logprob], best first, lower id first if equal. */
  readonly top: readonly (readonly [number, number])[];
}

/** Rows of logits of a run. Valid until the next run. */
export interface LogitRows {
  /** Returns a row in main memory. @throws RuntimeFault if a device does not bring it */
  row(row: number): Float32Array;
  /**
   * Returns the device's score of the token after a row. Null if only the whole row can give it: no device
   * has scored it, it has no numbers, or tokens beyond the list may be as likely.
   * @param top most likely tokens to list, at most 20
   */
  score(row: number, top: number): TokenScore | null;
}

/** Thrown by a run if its signal was aborted before it, or stopped it. The same run may be made again. */
export class RunTerminated extends Error {
  override readonly name = 'RunTerminated';
}

/** Thrown by a runner if the runtime refuses a call or cannot complete it. */
export class RuntimeFault extends Error {
  override readonly name = 'RuntimeFault';
  /** The runtime's name of the kind of error. */
  readonly code: string;
  readonly kind: FaultKind;

  constructor(message: string, code: string, kind: FaultKind) {
    super(message);
    this.code = code;
    this.kind = kind;
  }
}

/** What the operator can do after `out-of-memory`. */
export const MEMORY_ADVICE = 'set CONTINUO_SLOTS or CONTINUO_CONTEXT lower';

/** After `device-lost`, no call on the device can succeed until the process has been started again. */
export type FaultKind = 'device-lost' | 'out-of-memory' | 'other';

/** Returns the kind of an error, or of its first cause that the runtime reported. */
export function faultKind(thrown: unknown): FaultKind {
  if (thrown instanceof RuntimeFault) return thrown.kind;
  return thrown instanceof Error ? faultKind(thrown.cause) : 'other';
}

/** The KV of a slot as bytes, so that it can be kept outside the cache. Not to be used during a run. */
export interface KvBytes {
  /** Bytes of one position: all layers, keys and values. */
  readonly positionBytes: number;
  /** Fills `bytes` with positions [start, end) of a slot; its length is (end − start) · positionBytes. */
  read(slot: number, start: number, end: number, bytes: Uint8Array): void;
  /**
   * Puts back what `read` returned for the same positions of any slot, from `start` on, in consecutive parts.
   * Positions before `start` must be in the slot.
   */
  write(slot: number, start: number, parts: readonly Uint8Array[]): void;
  /** Gives the memory of a slot's positions from `start` on back to the system. Their content is lost. */
  discard(slot: number, start: number): void;
}

/** The state of a slot at a position, kept outside of the slots. */
export interface KeptState {
  /** Whether it is gone: devices keep the last ones only. Absent = false. */
  readonly isLost?: boolean;
  /** Puts it into a slot, as the state of this position. */
  restore(slot: number, position: number): void;
}

/**
 * What a model keeps of a slot beside its KV, in a fixed size: convolution windows. A slot has the state of
 * one position, the number of tokens that it is made of: where its last run ended, and where that run began.
 * A run goes on from either, so that it can be made again. Every slot has the state of position 0. Not to be
 * used during a run.
 */
export interface SlotStates {
  /** Bytes of a slot's state. */
  readonly bytes: number;
  /** Keeps the state of a position. @throws Error if the slot does not have it */
  keep(slot: number, position: number): KeptState;
  /** Fills `bytes` with the state of a position. @throws Error if the slot does not have it */
  read(slot: number, position: number, bytes: Uint8Array): void;
  /** Replaces what the slot has by a state that `read` returned for the same position of any slot. */
  write(slot: number, position: number, bytes: Uint8Array): void;
}

/** A run of prompts that a device has begun. */
export interface BegunPrefill {
  /** Waits for the logits. Call it once, before the next prompt. They are valid until then. */
  finish(): Float32Array;
  /** Milliseconds that the device took for it; 0 if it has not ended. */
  readonly deviceMs: number;
}

export interface ModelRunner {
  readonly shape: ModelShape;
  readonly kvBytes: KvBytes;
  /**
   * Null or absent = a slot is its KV. Otherwise a run must begin where the slot has the state: `prefill`
   * throws elsewhere, and a row of `decode` has no numbers as its logits.
   */
  readonly states?: SlotStates | null;
  /** Null or absent = `decode` returns whole rows. */
  readonly sparse?: SparseRows | null;
  /** Decode runs are graphs of CUDA. Absent = false. */
  readonly usesGraphs?: boolean;
  /** If the device draws all tokens of a run, it can begin the next one before the host reads them. */
  readonly runsAhead?: boolean;
  /**
   * Whether the device computes this row in a decode run that it has begun. `decode` takes that run if it has
   * all rows of sequences; else it is lost. `beginPrefill` comes behind it. All else waits for its end.
   */
  hasBegun?(row: SlotToken): boolean;
  /**
   * Returns raw float32 logits: row r at [r · vocabularySize, (r + 1) · vocabularySize), valid until the next
   * call. In runs of `minRows` or more, and of a `rowMultiple`, the bits of a row do not depend
   * on the other rows.
   * @param signal a runner that can be stopped does not block the event loop then; others ignore it
   */
  decode(batch: DecodeBatch, signal?: AbortSignal): Float32Array | Promise<Float32Array>;
  /** Returns the logits of logitsAt[i] at row i, valid until the next call. Does not block the event loop. */
  prefill(chunk: PrefillChunk, signal: AbortSignal): Promise<Float32Array>;
  /**
   * Computes whole prompts in neighbouring slots, in ascending order and without images. The longest one
   * times their number is at most `maxPrefillChunks` chunks. Returns the logits of each prompt's `logitsAt`,
   * prompt after prompt, valid until the next call. Only for shapes with `joinsPrompts`.
   */
  prefillTogether?(prompts: readonly PrefillChunk[], signal: AbortSignal): Promise<Float32Array>;
  /**
   * As `prefill` or `prefillTogether`, but the caller may decode before it takes the logits. Returns null if
   * the run must be made in its turn.
   */
  beginPrefill?(chunks: readonly PrefillChunk[]): BegunPrefill | null;
  /**
   * As `prefill` or `prefillTogether`, for 1 to `maxScored` rows of logits. They stay on the device, which
   * scores a token of each. Only for shapes with `maxScored`.
   * @param next by row: the token that follows
   */
  score?(chunks: readonly PrefillChunk[], next: Int32Array, signal: AbortSignal): Promise<LogitRows>;
  /** Copies the KV of positions [start, end) from one slot to another. */
  copy(from: number, to: number, end: number, start?: number): void;
  dispose(): void;
}

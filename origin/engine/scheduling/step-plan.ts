import {
  computedRows,
  type DecodeBatch,
  type EmbeddedImage,
  imagesWithin,
  type ModelShape,
  type PrefillChunk,
} from '../../model/model-runner.ts';

/**
 * Returns the end of the prompt's next run. Chunks keep to a grid, so that cached prefixes do not change the
 * split. A single position after the grid gets a run of its own, because its bits differ from those in a
 * larger run.
 */
function chunkEnd(computed: number, promptLength: number, chunk: number, chunks: number): number {
  const end = Math.min(promptLength, computed - (computed % chunk) + chunk * chunks);
  return end % chunk === 1 && end - computed > chunk ? end - 1 : end;
}

/** Prompt positions whose logits the request needs. */
export type WantedLogits = 'none' | 'last' | 'all';

/** What the next run of a prompt depends on. */
interface PromptProgress {
  readonly slot: number;
  /** The prompt, or what of it may be computed now. */
  readonly runnable: Int32Array;
  /** Positions whose KV is in the slot. */
  readonly computed: number;
  readonly wantedLogits: WantedLogits;
  /**
   * First position whose logits are wanted. With `all`, its whole chunk gets logits, so that their bits do
   * not depend on it.
   */
  readonly logitsFrom: number;
  /** Vectors that take the place of image tokens in the prompt. */
  readonly images: readonly EmbeddedImage[];
}

interface RunLengths {
  /** Positions of a chunk. */
  readonly chunk: number;
  /** Most chunks of a run. Logits of all positions are computed chunk by chunk. */
  readonly chunks: number;
  /** Most logits of a run that computes those of all positions; absent = a chunk's. */
  readonly maxLogits?: number | undefined;
}

/** Returns the prompt's next run. */
export function prefillChunk(progress: PromptProgress, lengths: RunLengths): PrefillChunk {
  const { slot, runnable: prompt, computed, wantedLogits: wanted, logitsFrom: from, images } = progress;
  const { chunk, chunks, maxLogits = chunk } = lengths;
  const endAfter = (most: number) => chunkEnd(computed, prompt.length, chunk, most);
  const several = wanted === 'all' ? endAfter(1) : endAfter(chunks);
  const hasMoreRows = wanted === 'last' && from < prompt.length - 1 && several > from;
  const whole = hasMoreRows ? endAfter(1) : several;
  const end = wanted === 'all' && whole > from ? Math.min(whole, computed + maxLogits) : whole;
  const count = end - computed;
  let logitsAt = new Int32Array(0);
  if (wanted === 'all' && end > from) logitsAt = Int32Array.from({ length: count }, (_, index) => index);
  if (wanted === 'last' && end > from) {
    const first = Math.max(0, from - computed);
    logitsAt = Int32Array.from({ length: count - first }, (_, index) => first + index);
  }
  const run = { slot, start: computed, tokens: prompt.subarray(computed, end), logitsAt };
  return images.length === 0 ? run : { ...run, images: imagesWithin(images, computed, end) };
}

/** A row of the decode batch. */
export interface DecodeRow {
  readonly slot: number;
  /** Positions whose KV is in the slot = position of the next token. */
  readonly computed: number;
  readonly lastToken: number;
}

type BatchShape = Pick<ModelShape, 'slots' | 'minRows' | 'rowMultiple'>;

/** Builds the decode batch: the contiguous range of slots that covers all decoding sequences. */
export class DecodeBatchBuilder {
  /** Reused from step to step. */
  readonly #tokens: Int32Array;
  readonly #positions: Int32Array;
  readonly #idle: Uint8Array;
  readonly #shape: BatchShape;

  /** Idle slots are added if there are fewer rows. */
  constructor(shape: BatchShape) {
    this.#tokens = new Int32Array(shape.slots);
    this.#positions = new Int32Array(shape.slots);
    this.#idle = new Uint8Array(shape.slots);
    this.#shape = shape;
  }

  /**
   * Returns null if no sequence decodes.
   * @param bySlot the sequence decoding in each slot, or null
   * @param idlePosition a position that an idle row of the slot may overwrite
   */
  build(bySlot: readonly (DecodeRow | null)[], idlePosition: (slot: number) => number): DecodeBatch | null {
    const first = bySlot.findIndex((row) => row !== null);
    if (first < 0) return null;
    const last = bySlot.findLastIndex((row) => row !== null);
    const rows = computedRows(this.#shape, last - first + 1);
    const firstSlot = Math.min(first, bySlot.length - rows);
    for (let row = 0; row < rows; row++) {
      const sequence = bySlot[firstSlot + row] ?? null;
      this.#idle[row] = Number(sequence === null);
      this.#tokens[row] = sequence === null ? 0 : sequence.lastToken;
      this.#positions[row] = sequence === null ? idlePosition(firstSlot + row) : sequence.computed;
    }
    return { firstSlot, rows, tokens: this.#tokens, positions: this.#positions, idle: this.#idle };
  }
}

/** A decoding sequence to move, and the free slot within the range that it moves to. */
export interface Move {
  readonly from: number;
  readonly to: number;
}

/** Positions of KV that can be copied in the time of computing one row. A low estimate: copying is cheap. */
export const COPIED_POSITIONS_PER_ROW = 64;

/**
 * Decides when to close a hole in the range of decoding slots. Applies the ski-rental rule: a sequence at the
 * end of the range is moved into a hole once computing the holes has cost as much as the copy. The total cost
 * is at most twice that of the best decision in hindsight.
 */
export class Compaction {
  /** Idle rows computed since the last move. */
  #wasted = 0;

  /**
   * Returns the move to make now, or null. Called once per decode step.
   * @param bySlot the sequence decoding in each slot, or null
   * @param isFree whether a slot can take a sequence
   */
  next(bySlot: readonly (DecodeRow | null)[], isFree: (slot: number) => boolean): Move | null {
    const first = bySlot.findIndex((row) => row !== null);
    const last = bySlot.findLastIndex((row) => row !== null);
    let holes = 0;
    let hole = -1;
    for (let slot = first + 1; slot < last; slot++) {
      if (bySlot[slot] !== null || !isFree(slot)) continue;
      holes++;
      hole = slot;
    }
    if (holes === 0) {
      this.#wasted = 0;
      return null;
    }
    this.#wasted += holes;
    const atFirst = bySlot[first]!.computed;
    const atLast = bySlot[last]!.computed;
    if (this.#wasted * COPIED_POSITIONS_PER_ROW < Math.min(atFirst, atLast)) return null;
    this.#wasted = 0;
    return { from: atFirst < atLast ? first : last, to: hole };
  }
}

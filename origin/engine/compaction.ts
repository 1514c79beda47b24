import type { DecodeRow } from './scheduler.ts';

/** A decoding sequence to move, and the free slot inside the range it moves to. */
export interface Move {
  readonly from: number;
  readonly to: number;
}

/** Computing one row costs about as much as copying the KV of this many positions. A low guess: copying is cheap. */
const COPIED_POSITIONS_PER_ROW = 64;

/**
 * Decides when a hole in the range of decoding slots is worth a copy. The rent-or-buy rule: a sequence is moved from the
 * end of the range into a hole once computing the holes has cost as much as the copy does, which is never more than
 * twice the cost of the best choice in hindsight.
 */
export class Compaction {
  #wasted = 0;

  /**
   * Called once per decode step.
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

/** To copy so many chunks takes a fraction of the time to compute one. */
export const MAX_COPIED_CHUNKS = 32;

/** Copy the KV of positions [start, end) from one slot to another, before the next run. */
export interface KvCopy {
  readonly from: number;
  readonly to: number;
  readonly start: number;
  readonly end: number;
  /** The state of this position is copied too. Absent = none. */
  readonly state?: number;
}

/** Long copies, made piece by piece in the order in which they were added. */
export class PendingCopies {
  readonly #copies: KvCopy[] = [];

  get isEmpty(): boolean {
    return this.#copies.length === 0;
  }

  add(copy: KvCopy): void {
    this.#copies.push(copy);
  }

  /** Takes the next pieces, of `most` positions together. */
  take(most: number): KvCopy[] {
    const pieces: KvCopy[] = [];
    for (let left = most; left > 0; ) {
      const copy = this.#copies.shift();
      if (copy === undefined) break;
      const end = Math.min(copy.end, copy.start + left);
      pieces.push({ ...copy, end });
      if (end < copy.end) this.#copies.unshift({ ...copy, start: end });
      left -= end - copy.start;
    }
    return pieces;
  }

  /** Takes all until no copy reads or writes a slot. */
  settle(slot: number): KvCopy[] {
    const last = this.#copies.findLastIndex(({ from, to }) => from === slot || to === slot);
    return this.#copies.splice(0, last + 1);
  }

  isTarget(slot: number): boolean {
    return this.#copies.some(({ to }) => to === slot);
  }

  /** Positions at the start of a slot that are still to be read. */
  sourceEnd(slot: number): number {
    return this.#copies.reduce((end, copy) => (copy.from === slot ? Math.max(end, copy.end) : end), 0);
  }
}

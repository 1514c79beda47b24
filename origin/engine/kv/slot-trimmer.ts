import type { KvBytes } from '../../model/model-runner.ts';
import type { KvSlots } from './kv-slots.ts';

/** Rarely, because memory that was given back is slower when it is used for the first time. */
export const TRIM_INTERVAL_MS = 500;

/** Gives the memory of free slots back to the system, except that of their cached prefixes: one slot per TRIM_INTERVAL_MS. */
export class SlotTrimmer {
  readonly #slots: KvSlots;
  readonly #kvBytes: KvBytes;
  readonly #now: () => number;
  #trimmedAt = -Infinity;

  /** @param now milliseconds of a monotonic clock */
  constructor(slots: KvSlots, kvBytes: KvBytes, now: () => number) {
    this.#slots = slots;
    this.#kvBytes = kvBytes;
    this.#now = now;
  }

  /** Trims a slot if the interval has passed. Returns whether more is left. Not during a run. */
  trim(): boolean {
    const now = this.#now();
    if (now - this.#trimmedAt < TRIM_INTERVAL_MS) return this.#slots.hasSurplus;
    const surplus = this.#slots.takeSurplus();
    if (surplus === null) return false;
    this.#trimmedAt = now;
    this.#kvBytes.discard(surplus.slot, surplus.kept);
    return this.#slots.hasSurplus;
  }
}

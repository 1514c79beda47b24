import type { KvBytes } from '../../model/model-runner.ts';
import type { KvSlots } from './kv-slots.ts';

/** Rarely, because memory that was given back is slower when it is used for the first time. */
export const TRIM_INTERVAL_MS = 500;
/** While many free slots have memory, because a loaded server leaves more of them than it gives back otherwise. */
const BUSY_INTERVAL_MS = 50;
const MANY_SLOTS = 8;

/** Gives the memory of free slots back to the system, one slot per interval. They keep some of their cached prefixes. */
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

  /** Trims a slot if the interval has passed. Returns whether more may be left. Not during a run. */
  trim(): boolean {
    const now = this.#now();
    // Steps follow each other faster, and need not look at all slots.
    if (now - this.#trimmedAt < BUSY_INTERVAL_MS) return true;
    const waiting = this.#slots.surplus;
    const interval = waiting > MANY_SLOTS ? BUSY_INTERVAL_MS : TRIM_INTERVAL_MS;
    if (now - this.#trimmedAt < interval) return waiting > 0;
    const surplus = this.#slots.takeSurplus();
    if (surplus === null) return false;
    this.#trimmedAt = now;
    this.#kvBytes.discard(surplus.slot, surplus.kept);
    return waiting > 1;
  }
}

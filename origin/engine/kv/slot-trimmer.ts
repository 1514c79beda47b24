import type { KvBytes } from '../../model/model-runner.ts';
import type { KvSlots } from './kv-slots.ts';

/** Rarely, because memory that was given back is slower when it is used for the first time. */
export const TRIM_INTERVAL_MS = 500;
/** While many free slots have memory, because a loaded server else leaves more than it gives back. */
const BUSY_INTERVAL_MS = 50;
const MANY_SLOTS = 8;

/**
 * Gives the memory of free slots back to the system, one slot per interval. They keep some of their cached
 * prefixes.
 * @param now milliseconds of a monotonic clock
 * @returns trims a slot if the interval has passed, and returns whether more may be left. Not during a run
 */
export function slotTrimmer(slots: KvSlots, kvBytes: KvBytes, now: () => number): () => boolean {
  let trimmedAt = -Infinity;
  let lookedAt = -Infinity;
  return () => {
    const time = now();
    // Steps follow each other faster, and need not look at all slots.
    if (time - lookedAt < BUSY_INTERVAL_MS) return true;
    lookedAt = time;
    const waiting = slots.surplus;
    const interval = waiting > MANY_SLOTS ? BUSY_INTERVAL_MS : TRIM_INTERVAL_MS;
    if (time - trimmedAt < interval) return waiting > 0;
    const surplus = slots.takeSurplus();
    if (surplus === null) return false;
    trimmedAt = time;
    kvBytes.discard(surplus.slot, surplus.kept);
    return waiting > 1;
  };
}

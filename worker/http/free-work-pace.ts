import { VirtualTimes } from '@continuo/shared/virtual-times.ts';

/** Less work costs too little to wait. */
const LEAST_BYTES = 16_384;
/** Keeps the free work for one tenant near a hundredth of a core. */
const BYTES_PER_MS = 8_192;
/** Nothing waits longer. A caller then gets one response per second. */
const MAX_WAIT_MS = 1_000;

/** Waits for the turn of a refused body of `bytes`, or of work that costs as much. */
export type FreeWorkTurn = (tenantId: string, bytes: number) => Promise<void>;

/**
 * Spaces out by tenant what costs time and counts in no limit: refusals of large bodies, and streams that are
 * read again. The first one is sent at once. Callers without a valid key count as one tenant.
 */
export function freeWorkPace(now: () => number, pause: (ms: number) => Promise<unknown>): FreeWorkTurn {
  /** In milliseconds of the clock. */
  const times = new VirtualTimes();
  return async (tenantId, bytes) => {
    if (bytes < LEAST_BYTES) return;
    times.now = now();
    times.forget();
    const wait = Math.min(MAX_WAIT_MS, times.lead(tenantId));
    const cost = bytes / BYTES_PER_MS;
    times.charge(tenantId, cost, MAX_WAIT_MS + cost);
    if (wait > 0) await pause(wait);
  };
}

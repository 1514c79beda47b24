const ATTEMPTS = 3;
/** Longest pause before the second attempt, in milliseconds. Doubles with every further attempt. */
const FIRST_PAUSE_MS = 50;

/** Randomness and time, so that clients that failed together do not retry together. */
export interface Backoff {
  /** Returns a number in [0, 1). */
  random(): number;
  pause(ms: number): Promise<unknown>;
}

/** Returns the wait after so many failures in a row, which doubles with each of them. */
export const backOff = (failures: number, firstMs: number, maxMs = Infinity): number =>
  Math.min(maxMs, firstMs * 2 ** (failures - 1));

/** Returns a random part of a wait, at least half of it. @param random in [0, 1) */
export const partOf = (ms: number, random: number): number => ms * (0.5 + random / 2);

/** Returns whether an object has rejected a call because it has too many. */
export const isOverloaded = (thrown: unknown): boolean =>
  (thrown as { readonly overloaded?: unknown } | null)?.overloaded === true;

/**
 * Retries an idempotent Durable Object call, at most three attempts. An overloaded object is not called
 * again. Each attempt must get its own stub, because the stub of an object that has restarted fails
 * permanently.
 */
export async function retry<T>(call: () => Promise<T>, { random, pause }: Backoff): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call();
    } catch (thrown) {
      if (attempt === ATTEMPTS || isOverloaded(thrown)) throw thrown;
      await pause(partOf(backOff(attempt, FIRST_PAUSE_MS), random()));
    }
  }
}

/** Waits for the end of all, also if one fails. @throws what the first one that failed throws */
export async function settleAll(work: readonly Promise<unknown>[]): Promise<void> {
  for (const ended of await Promise.allSettled(work)) if (ended.status === 'rejected') throw ended.reason;
}

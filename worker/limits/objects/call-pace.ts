/** Regular calls per second that an object asks its isolates for while MAX_NEXT_MS allows it. */
const CALLS_PER_S = 40;
/**
 * Longest time between the regular calls of an isolate: they tell it which keys are blocked, within 2 s. So a
 * thousand isolates make about nine tenths of the 1,000 calls/s that one object can take.
 */
export const MAX_NEXT_MS = 1_100;

/**
 * Gives every call the next free place on a time line, at which its isolate reports again. So few isolates
 * report as often as they like, and many take turns. In memory only: a restart forgets the places of 1.1 s.
 */
export class CallPace {
  /** Unix milliseconds of the last place. */
  #last = 0;

  /** Returns the milliseconds until the isolate that calls now should report again. */
  next(now: number): number {
    this.#last = Math.min(now + MAX_NEXT_MS, Math.max(now, this.#last + 1000 / CALLS_PER_S));
    return Math.round(this.#last - now);
  }
}

import type { After } from '@continuo/shared/time-limit.ts';

/** Uses one platform timer per call. */
export const afterAlone: After = (ms, then) => {
  const id = setTimeout(then, ms);
  return () => clearTimeout(id);
};

/**
 * Maximum delays of the first platform timer and of the others, so that new waits rarely end before it fires:
 * the shortest of a usual request is 450 ms.
 */
const FIRST_DELAY_MS = 450;
const MAX_DELAY_MS = 5_000;

interface Wait {
  readonly until: number;
  readonly then: () => void;
}

/**
 * Runs all timeouts of one request on one platform timer. Most timeouts are cancelled, and a platform timer
 * for each of them took up to 10 % of a plain request's CPU time.
 */
export class RequestTimers {
  readonly #now: () => number;
  readonly #waits = new Set<Wait>();
  /** When the platform timer fires; null = none is set. */
  #due: number | null = null;
  #maxDelay = FIRST_DELAY_MS;
  #cancel = (): void => {};

  /** @param now Unix milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  readonly after: After = (ms, then) => {
    const wait = { until: this.#now() + ms, then };
    this.#waits.add(wait);
    this.#scheduleBy(wait.until);
    // The platform timer stays set: it finds nothing to do, and ends with the request.
    return () => this.#waits.delete(wait);
  };

  #scheduleBy(until: number): void {
    const now = this.#now();
    const due = Math.min(until, now + this.#maxDelay);
    if (this.#due !== null && this.#due <= due) return;
    this.#cancel();
    this.#due = due;
    this.#cancel = afterAlone(due - now, () => this.#runDue());
  }

  #runDue(): void {
    this.#due = null;
    this.#maxDelay = MAX_DELAY_MS;
    const now = this.#now();
    for (const wait of [...this.#waits]) {
      // A callback may cancel the waits after it.
      if (wait.until <= now && this.#waits.delete(wait)) wait.then();
    }
    if (this.#waits.size === 0) return;
    let next = Number.POSITIVE_INFINITY;
    for (const { until } of this.#waits) next = Math.min(next, until);
    this.#scheduleBy(next);
  }
}

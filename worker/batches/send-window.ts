import { backOff } from '@continuo/shared/retry.ts';

/** How many lines of a batch run at the same time. Pure. */

const FIRST = 8;
/** Enough to fill the slots of a large origin. */
const MAX = 96;
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 60_000;

/**
 * Follows the free slots of the origin and of the tenant's limits, as TCP follows a link (additive increase,
 * multiplicative decrease): responses widen the window, and a refusal halves it and stops all sending for a
 * while.
 */
export class SendWindow {
  #size = FIRST;
  /** Until the first refusal, every response widens the window by one. */
  #probing = true;
  #failures = 0;
  #pausedUntil = 0;

  /** Lines that may run now. */
  size(now: number): number {
    return now < this.#pausedUntil ? 0 : Math.floor(this.#size);
  }

  /** Milliseconds until lines may be sent again. */
  pauseMs(now: number): number {
    return Math.max(0, this.#pausedUntil - now);
  }

  responded(): void {
    this.#failures = 0;
    this.#size = Math.min(MAX, this.#size + (this.#probing ? 1 : 1 / this.#size));
  }

  /** @param retryAfterMs the time that the refusal names; null = a failure, after which pauses double */
  refused(now: number, retryAfterMs: number | null): void {
    // Refusals of requests that were sent before the pause tell nothing new.
    if (now < this.#pausedUntil) return;
    this.#failures += 1;
    this.#probing = false;
    this.#size = Math.max(1, this.#size / 2);
    const doubling = backOff(this.#failures, FIRST_PAUSE_MS);
    this.#pausedUntil = now + Math.min(MAX_PAUSE_MS, retryAfterMs ?? doubling);
  }
}

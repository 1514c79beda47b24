import type { After } from '@continuo/shared/time-limit.ts';

/**
 * Calls back when a wait lasts too long. Starting a wait sets a timestamp; the timer is re-armed only when it
 * fires, because waits start and end with every event.
 */
export class SilenceTimer {
  readonly #now: () => number;
  readonly #after: After;
  readonly #onSilence: () => void;
  /** End of the current wait; null between waits. */
  #deadline: number | null = null;
  #timer: { readonly cancel: () => void; readonly due: number } | null = null;

  /** @param now Unix milliseconds */
  constructor(now: () => number, after: After, onSilence: () => void) {
    this.#now = now;
    this.#after = after;
    this.#onSilence = onSilence;
  }

  /** Starts a wait of at most `ms` milliseconds. */
  begin(ms: number): void {
    this.#deadline = this.#now() + ms;
    if (this.#timer === null || this.#timer.due > this.#deadline) this.#arm(this.#deadline);
  }

  /** Ends the wait. */
  end(): void {
    this.#deadline = null;
  }

  /** Ends the wait and clears the timer. */
  stop(): void {
    this.end();
    this.#timer?.cancel();
    this.#timer = null;
  }

  #arm(due: number): void {
    this.#timer?.cancel();
    this.#timer = { cancel: this.#after(due - this.#now(), () => this.#check()), due };
  }

  #check(): void {
    this.#timer = null;
    if (this.#deadline === null) return;
    if (this.#deadline > this.#now()) {
      this.#arm(this.#deadline);
    } else {
      this.#deadline = null;
      this.#onSilence();
    }
  }
}

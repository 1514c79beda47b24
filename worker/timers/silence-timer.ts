import type { After } from './request-timers.ts';

/**
 * Tells when a wait lasts too long. One time limit serves all waits of a stream: this runs twice per event.
 */
export class SilenceTimer {
  readonly #now: () => number;
  readonly #after: After;
  readonly #onSilence: () => void;
  /** When the present wait is too long; null between waits. */
  #deadline: number | null = null;
  #timer: { readonly cancel: () => void; readonly due: number } | null = null;

  /** @param now Unix milliseconds */
  constructor(now: () => number, after: After, onSilence: () => void) {
    this.#now = now;
    this.#after = after;
    this.#onSilence = onSilence;
  }

  /** A wait begins that may last `ms` milliseconds. */
  begin(ms: number): void {
    this.#deadline = this.#now() + ms;
    if (this.#timer === null || this.#timer.due > this.#deadline) this.#arm(this.#deadline);
  }

  /** The wait is over. */
  end(): void {
    this.#deadline = null;
  }

  /** No wait will follow. */
  stop(): void {
    this.end();
    this.#timer?.cancel();
    this.#timer = null;
  }

  #arm(due: number): void {
    this.#timer?.cancel();
    this.#timer = { cancel: this.#after(due - this.#now(), () => this.#look()), due };
  }

  #look(): void {
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

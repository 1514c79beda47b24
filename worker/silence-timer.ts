/**
 * Tells when a wait lasts too long. One timer serves all waits of a stream: setting one per event would cost more than
 * the event itself.
 */
export class SilenceTimer {
  readonly #now: () => number;
  readonly #onSilence: () => void;
  /** When the present wait is too long; null between waits. */
  #deadline: number | null = null;
  #timer: { readonly id: ReturnType<typeof setTimeout>; readonly due: number } | null = null;

  /** @param now Unix milliseconds */
  constructor(now: () => number, onSilence: () => void) {
    this.#now = now;
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
    if (this.#timer !== null) clearTimeout(this.#timer.id);
    this.#timer = null;
  }

  #arm(due: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer.id);
    this.#timer = { id: setTimeout(() => this.#look(), due - this.#now()), due };
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

/** A runner computes one thing at a time, and gives its native memory back only when nothing runs in it any more. */
export class RunGuard {
  readonly #release: () => void;
  #prefilling = false;
  #disposed = false;

  constructor(release: () => void) {
    this.#release = release;
  }

  /** Throws while a prefill runs and after `dispose`. */
  requireIdle(): void {
    if (this.#disposed) throw new Error('the runner has been disposed');
    if (this.#prefilling) throw new Error('the runner is prefilling');
  }

  /** A run during which the event loop turns. */
  async prefill<T>(run: () => Promise<T>): Promise<T> {
    this.requireIdle();
    this.#prefilling = true;
    try {
      return await run();
    } finally {
      this.#prefilling = false;
      if (this.#disposed) this.#release();
    }
  }

  /** Releases now, or when the prefill under way has ended. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    if (!this.#prefilling) this.#release();
  }
}

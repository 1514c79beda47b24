/** Ensures that a runner computes one thing at a time and releases native memory only when nothing runs. */
export class RunGuard {
  readonly #release: () => void;
  #prefilling = false;
  #disposed = false;

  constructor(release: () => void) {
    this.#release = release;
  }

  /** @throws Error while a prefill runs and after `dispose` */
  requireIdle(): void {
    if (this.#disposed) throw new Error('the runner has been disposed');
    if (this.#prefilling) throw new Error('the runner is prefilling');
  }

  /** Runs a prefill, during which the event loop continues. */
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

  /** Releases now, or after the current prefill. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    if (!this.#prefilling) this.#release();
  }
}

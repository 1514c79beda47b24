/** Ensures that a session computes one thing at a time and frees native memory only when idle. */
export class RunGuard {
  readonly #release: () => void;
  #running = false;
  #disposed = false;

  constructor(release: () => void) {
    this.#release = release;
  }

  /** @throws Error during a `run` and after `dispose` */
  requireIdle(): void {
    if (this.#disposed) throw new Error('the session has been disposed');
    if (this.#running) throw new Error('the session is running');
  }

  /** Waits for something during which the event loop continues, such as a prefill. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    this.requireIdle();
    this.#running = true;
    try {
      return await work();
    } finally {
      this.#running = false;
      if (this.#disposed) this.#release();
    }
  }

  /** Releases now, or after the current `run`. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    if (!this.#running) this.#release();
  }
}

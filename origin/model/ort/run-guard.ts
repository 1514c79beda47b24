/** Ensures that a runner computes one thing at a time and releases native memory only when nothing runs. */
export class RunGuard {
  readonly #release: () => void;
  #running = false;
  #disposed = false;

  constructor(release: () => void) {
    this.#release = release;
  }

  /** @throws Error during a run and after `dispose` */
  requireIdle(): void {
    if (this.#disposed) throw new Error('the runner has been disposed');
    if (this.#running) throw new Error('the runner is running');
  }

  /** Makes a run during which the event loop continues. */
  async hold<T>(run: () => Promise<T>): Promise<T> {
    this.requireIdle();
    this.#running = true;
    try {
      return await run();
    } finally {
      this.#running = false;
      if (this.#disposed) this.#release();
    }
  }

  /** Releases now, or after the current run. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    if (!this.#running) this.#release();
  }
}

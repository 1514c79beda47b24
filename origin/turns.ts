/** One piece of work at a time, in the order in which they came. Who leaves while waiting is gone at once. */
export class Turns {
  #taken = false;
  /** In order; each begins the turn of one who waits. */
  readonly #waiting = new Set<() => void>();

  /**
   * The result of `work`, which is never begun once the signal was aborted.
   * @throws what `work` throws, or the signal's reason
   */
  async take<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    if (this.#taken) await this.#myTurn(signal);
    this.#taken = true;
    try {
      signal.throwIfAborted();
      return await work();
    } finally {
      this.#next();
    }
  }

  #myTurn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const begin = () => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        this.#waiting.delete(begin);
        reject(signal.reason);
      };
      this.#waiting.add(begin);
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  /** Stays taken when there is a next one, so that nobody who comes now gets in between. */
  #next(): void {
    const [begin] = this.#waiting;
    if (begin === undefined) {
      this.#taken = false;
      return;
    }
    this.#waiting.delete(begin);
    begin();
  }
}

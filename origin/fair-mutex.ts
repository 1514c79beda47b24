/** Whose turn it is to be. */
export interface Caller {
  readonly tenantId: string;
  /** Aborted when it leaves. */
  readonly signal: AbortSignal;
}

/**
 * One piece of work at a time. Tenants take turns; inside one, first come, first served. Who leaves while waiting is gone
 * at once.
 */
export class Turns {
  #taken = false;
  /** By tenant, the one that has waited longest since its last turn first; each item begins the turn of one who waits. */
  readonly #waiting = new Map<string, Set<() => void>>();

  /**
   * The result of `work`, which is never begun once the caller has left.
   * @throws what `work` throws, or the signal's reason
   */
  async take<T>({ tenantId, signal }: Caller, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.#taken) await this.#myTurn(tenantId, signal);
    this.#taken = true;
    try {
      signal.throwIfAborted();
      return await work();
    } finally {
      this.#next(tenantId);
    }
  }

  #myTurn(tenantId: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const begin = () => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        this.#forget(tenantId, begin);
        reject(signal.reason);
      };
      const own = this.#waiting.get(tenantId) ?? new Set();
      this.#waiting.set(tenantId, own.add(begin));
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  /** Stays taken when there is a next one, so that nobody who comes now gets in between. */
  #next(last: string): void {
    const own = this.#waiting.get(last);
    if (own !== undefined) {
      this.#waiting.delete(last);
      this.#waiting.set(last, own);
    }
    for (const [tenantId, [begin]] of this.#waiting) {
      if (begin === undefined) continue;
      this.#forget(tenantId, begin);
      begin();
      return;
    }
    this.#taken = false;
  }

  #forget(tenantId: string, begin: () => void): void {
    const own = this.#waiting.get(tenantId);
    own?.delete(begin);
    if (own?.size === 0) this.#waiting.delete(tenantId);
  }
}

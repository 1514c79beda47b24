/** The tenant and abort signal of one caller. */
export interface LockCaller {
  readonly tenantId: string;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

/**
 * Runs one piece of work at a time. Tenants alternate; within a tenant, the order is first come, first served. A caller
 * whose signal aborts leaves the queue at once.
 */
export class FairMutex {
  #locked = false;
  /** Waiting callers by tenant. The tenant whose last turn is longest ago comes first; each function starts one caller. */
  readonly #waiting = new Map<string, Set<() => void>>();

  /**
   * Returns the result of `work`. If the caller disconnects first, `work` is never started.
   * @throws what `work` throws, or the signal's reason
   */
  async run<T>({ tenantId, signal }: LockCaller, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.#locked) await this.#wait(tenantId, signal);
    this.#locked = true;
    try {
      signal.throwIfAborted();
      return await work();
    } finally {
      this.#startNext(tenantId);
    }
  }

  #wait(tenantId: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = () => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        this.#remove(tenantId, start);
        reject(signal.reason);
      };
      const own = this.#waiting.get(tenantId) ?? new Set();
      this.#waiting.set(tenantId, own.add(start));
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  /** Keeps the lock while a caller waits, so that a new caller cannot overtake it. */
  #startNext(lastTenant: string): void {
    const own = this.#waiting.get(lastTenant);
    if (own !== undefined) {
      this.#waiting.delete(lastTenant);
      this.#waiting.set(lastTenant, own);
    }
    for (const [tenantId, [start]] of this.#waiting) {
      if (start === undefined) continue;
      this.#remove(tenantId, start);
      start();
      return;
    }
    this.#locked = false;
  }

  #remove(tenantId: string, start: () => void): void {
    const own = this.#waiting.get(tenantId);
    own?.delete(start);
    if (own?.size === 0) this.#waiting.delete(tenantId);
  }
}

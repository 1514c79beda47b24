/** The tenant and abort signal of one caller. */
export interface LockCaller {
  readonly tenantId: string;
  /** The tenant's share relative to others; greater than zero. Default: 1. */
  readonly weight?: number;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

/**
 * Runs one piece of work at a time. Tenants get their weighted shares by the sizes of their work, however many callers they
 * have (start-time fair queueing, Goyal 1996). Within a tenant, the order is first come, first served. A caller whose signal
 * aborts leaves the queue at once.
 */
export class FairMutex {
  #locked = false;
  /** Waiting callers by tenant. The tenant whose last turn is longest ago comes first; each function starts one caller. */
  readonly #waiting = new Map<string, Set<() => void>>();
  /** Size ÷ weight that every tenant has had, or could have had, when the running work began. */
  #served = 0;
  /** By tenant, the same after its last work; only those above `#served`. */
  readonly #ahead = new Map<string, number>();

  /**
   * Returns the result of `work`. If the caller disconnects first, `work` is never started.
   * @param size of the work, in any unit that all callers share
   * @throws what `work` throws, or the signal's reason
   */
  async run<T>(caller: LockCaller, work: () => Promise<T>, size = 1): Promise<T> {
    const { tenantId, weight = 1, signal } = caller;
    signal.throwIfAborted();
    if (this.#locked) await this.#wait(tenantId, signal);
    this.#locked = true;
    try {
      signal.throwIfAborted();
      this.#charge(tenantId, size / weight);
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

  #charge(tenantId: string, cost: number): void {
    this.#served = this.#startOf(tenantId);
    this.#ahead.set(tenantId, this.#served + cost);
    for (const [tenant, end] of this.#ahead) if (end <= this.#served) this.#ahead.delete(tenant);
  }

  /** A tenant that had no work collects no credit. */
  #startOf(tenantId: string): number {
    return this.#ahead.get(tenantId) ?? this.#served;
  }

  /** Keeps the lock while a caller waits, so that a new caller cannot overtake it. */
  #startNext(lastTenant: string): void {
    const own = this.#waiting.get(lastTenant);
    if (own !== undefined) {
      this.#waiting.delete(lastTenant);
      this.#waiting.set(lastTenant, own);
    }
    const [next] = [...this.#waiting.keys()].sort((a, b) => this.#startOf(a) - this.#startOf(b));
    if (next === undefined) {
      this.#locked = false;
      this.#ahead.clear();
      return;
    }
    const [start] = this.#waiting.get(next)!;
    this.#remove(next, start!);
    start!();
  }

  #remove(tenantId: string, start: () => void): void {
    const own = this.#waiting.get(tenantId);
    own?.delete(start);
    if (own?.size === 0) this.#waiting.delete(tenantId);
  }
}

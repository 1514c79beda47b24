import { VirtualTimes } from '@continuo/shared/virtual-times.ts';

/** The tenant and abort signal of one caller. */
export interface LockCaller {
  readonly tenantId: string;
  /** The tenant's share relative to others; greater than zero. Default: 1. */
  readonly weight?: number;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

/**
 * Runs one piece of work at a time. Tenants get their weighted shares by the sizes of their work, however
 * many callers they have. Within a tenant, the order is first come, first served. A caller whose signal
 * aborts leaves the queue at once.
 */
export class FairMutex {
  #locked = false;
  /** Waiting callers by tenant; each function starts one. */
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #times = new VirtualTimes();

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
      this.#times.serve(tenantId, size / weight);
      this.#times.forget(this.#waiting);
      return await work();
    } finally {
      this.#startNext();
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
      const callers = this.#waiting.get(tenantId) ?? new Set();
      this.#waiting.set(tenantId, callers.add(start));
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  /** Keeps the lock while a caller waits, so that a new caller cannot overtake it. */
  #startNext(): void {
    const next = this.#times.first(this.#waiting.keys());
    if (next === null) {
      this.#locked = false;
      this.#times.clear();
      return;
    }
    const [start] = this.#waiting.get(next)!;
    this.#remove(next, start!);
    start!();
  }

  #remove(tenantId: string, start: () => void): void {
    const callers = this.#waiting.get(tenantId);
    callers?.delete(start);
    if (callers?.size === 0) this.#waiting.delete(tenantId);
  }
}

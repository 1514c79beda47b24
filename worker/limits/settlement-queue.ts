import type { SettlementRequest } from '../env/limiter-protocol.ts';
import type { SettlementCall, Settlements } from '../http/request-context.ts';
import { type Backoff, backoffMs } from '../timers/retry.ts';

/** A settlement waits this long for a reservation to travel with, or for other settlements. */
const GATHER_MS = 10;
/** If the call that carries a settlement has not returned by then, its request counts as dead. */
const CARRIER_TIMEOUT_MS = 1000;
const ATTEMPTS = 3;
/** Longest pause before the second attempt. Doubles with every further attempt. */
const RETRY_MS = 250;
/** A limiter that fails gets no more settlements than this that nothing but the next reservation delivers. */
const MAX_LEFT = 20;

interface Entry {
  readonly settlement: SettlementRequest;
  /** Resolves to whether the carrying call succeeded; null while the settlement waits for a call. */
  delivered: Promise<boolean> | null;
  /** Delivered or given up. A call that fails late does not queue it again. */
  over: boolean;
}

/**
 * Settlements on their way to their limiters. They travel with the next reservation, which the limiter decides after
 * applying them, or together a moment later. This saves calls: a call costs more than a settlement. A settlement may
 * arrive twice. There is one queue per isolate. It holds no I/O objects, because those belong to a single request.
 */
export class SettlementQueue implements Settlements {
  readonly #waiting = new Map<string, Set<Entry>>();
  readonly #backoff: Backoff;

  constructor(backoff: Backoff) {
    this.#backoff = backoff;
  }

  async withWaiting<T>(limiter: string, call: SettlementCall<T>): Promise<T> {
    const entries = [...(this.#waiting.get(limiter) ?? [])];
    this.#waiting.delete(limiter);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    for (const entry of entries) entry.delivered = promise;
    try {
      const result = await call(entries.map(({ settlement }) => settlement));
      resolve(true);
      return result;
    } catch (thrown) {
      for (const entry of entries) this.#wait(limiter, entry);
      resolve(false);
      throw thrown;
    }
  }

  async deliver(
    limiter: string,
    settlement: SettlementRequest,
    call: SettlementCall<unknown>,
  ): Promise<void> {
    const entry: Entry = { settlement, delivered: null, over: false };
    this.#wait(limiter, entry);
    const { pause, random } = this.#backoff;
    await pause(GATHER_MS);
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const delivered = await (entry.delivered
        ? Promise.race([entry.delivered, pause(CARRIER_TIMEOUT_MS)])
        : this.withWaiting(limiter, call).then(
            () => true,
            () => false,
          ));
      if (delivered) break;
      this.#wait(limiter, entry);
      // A restarting limiter may need a moment. Meanwhile, a reservation may carry the settlement.
      await pause(backoffMs(RETRY_MS, attempt, random()));
    }
    entry.over = true;
    const others = this.#waiting.get(limiter);
    others?.delete(entry);
    if (others?.size === 0) this.#waiting.delete(limiter);
  }

  leave(limiter: string, settlement: SettlementRequest): void {
    if ((this.#waiting.get(limiter)?.size ?? 0) >= MAX_LEFT) return;
    this.#wait(limiter, { settlement, delivered: null, over: false });
  }

  #wait(limiter: string, entry: Entry): void {
    if (entry.over) return;
    entry.delivered = null;
    const others = this.#waiting.get(limiter) ?? new Set();
    this.#waiting.set(limiter, others.add(entry));
  }
}

import { FlushLoop } from './flush-loop.ts';
import type { LimiterCaller } from './limiter-client.ts';
import { callObject } from './limiter-client.ts';
import { Exchange } from './quota/exchange.ts';
import type { LocalBudgets } from './quota/local-budgets.ts';
import type { LimiterAnswer, LimiterCall, ReservationRequest, ReservationResult } from './quota/protocol.ts';

/**
 * Calls the object of one tenant for an isolate. Every call is made by a request, and no request waits for
 * the call of another: I/O belongs to a single request.
 */
export class ObjectLink {
  readonly #tenantId: string;
  readonly #budgets: LocalBudgets;
  readonly #exchange: Exchange;
  readonly #loop = new FlushLoop(this);
  /** No calls at once while the object does not answer. */
  #failing = false;

  constructor(tenantId: string, budgets: LocalBudgets) {
    this.#tenantId = tenantId;
    this.#budgets = budgets;
    this.#exchange = new Exchange(budgets);
  }

  get isQuiet(): boolean {
    return this.#budgets.isQuiet;
  }

  get isIdle(): boolean {
    return this.isQuiet && !this.#loop.isRunning;
  }

  isDue(now: number): boolean {
    return this.#exchange.isDue(now);
  }

  isKnownOpen(keyId: string, now: number): boolean {
    return this.#exchange.isKnownOpen(keyId, now);
  }

  /** Has news delivered: at once if a call is due, for a slice of this key or in any case, otherwise soon. */
  wake(keyId: string | null, caller: LimiterCaller): void {
    if (!this.#failing && this.#exchange.isUrgent(keyId, caller.now()))
      caller.waitUntil(this.flush(caller).catch(() => {}));
    else this.keep(caller);
  }

  /** Has news delivered soon. */
  keep(caller: LimiterCaller): void {
    this.#loop.keep(caller);
  }

  /** Delivers news. Returns the number of decisions. */
  async flush(caller: LimiterCaller): Promise<number> {
    const call = this.#exchange.compose(null, caller.now());
    await this.#send(call, caller);
    return call.decisions.length;
  }

  /**
   * Asks for a reservation.
   * @param all carries all decisions, so that the object knows the request
   */
  async ask(request: ReservationRequest, caller: LimiterCaller, all = false): Promise<ReservationResult> {
    const { reservation } = await this.#send(this.#exchange.compose(request, caller.now(), all), caller);
    return reservation!;
  }

  async #send(call: LimiterCall, caller: LimiterCaller): Promise<LimiterAnswer> {
    const sentAt = caller.now();
    try {
      const answer = await callObject(caller, this.#tenantId, (object) => object.exchange(call));
      this.#exchange.take(call, answer, sentAt, caller.randomHex(8));
      this.#failing = false;
      return answer;
    } catch (thrown) {
      this.#exchange.lose(call);
      this.#failing = true;
      throw thrown;
    } finally {
      this.keep(caller);
    }
  }
}

import type { LimiterCaller } from './limiter-client.ts';
import { callObject } from './limiter-client.ts';
import type { LocalBudgets } from './quota/local-budgets.ts';
import type { LimiterCall, LimiterReply, ReservationRequest, ReservationResult } from './quota/protocol.ts';

/** Decisions wait this long for others before a call. */
const FLUSH_MS = 100;
/** Busy isolates wait longer: each call then carries more. */
const BUSY_FLUSH_MS = 250;
const BUSY_DECISIONS = 10;
/** Longest pause while the object does not reply. */
export const MAX_PAUSE_MS = 1_600;
/**
 * After pauses of this length in all, the next request takes the loop over: a request's work may end 30 s
 * after its response.
 */
const TAKE_OVER_MS = 5_000;
const MAX_MS = 15_000;
/** A loop without a sign of life for this long has ended with its request. */
const DEAD_MS = 5_000;

interface Loop {
  beatAt: number;
  /** Milliseconds of all pauses. */
  paused: number;
}

/**
 * Calls the object of one tenant for an isolate, until the isolate holds nothing of its budgets. I/O belongs
 * to a single request, so every call is made by a request, and no request waits for the call of another. The
 * loop of regular calls is the background work of one request at a time.
 */
export class ObjectLink {
  readonly #tenantId: string;
  readonly #budgets: LocalBudgets;
  #loop: Loop | null = null;
  /** No calls at once while the object does not reply. */
  #failing = false;

  constructor(tenantId: string, budgets: LocalBudgets) {
    this.#tenantId = tenantId;
    this.#budgets = budgets;
  }

  get isIdle(): boolean {
    return this.#budgets.isQuiet && this.#loop === null;
  }

  /** Has news delivered: at once if a call is due, for a slice of this key or in any case, otherwise soon. */
  wake(keyId: string | null, caller: LimiterCaller): void {
    if (!this.#failing && this.#budgets.isUrgent(keyId, caller.now()))
      caller.waitUntil(this.#flush(caller).catch(() => {}));
    else this.keep(caller);
  }

  /** Has news delivered soon: makes sure that a request runs the loop, one whose work is not too old. */
  keep(caller: LimiterCaller): void {
    const { beatAt = -Infinity, paused = 0 } = this.#loop ?? {};
    if (paused < TAKE_OVER_MS && caller.now() - beatAt < DEAD_MS) return;
    if (this.#budgets.isQuiet) return;
    const loop = { beatAt: caller.now(), paused: 0 };
    this.#loop = loop;
    caller.waitUntil(this.#repeat(loop, caller));
  }

  async #repeat(loop: Loop, caller: LimiterCaller): Promise<void> {
    let pause = FLUSH_MS;
    while (loop.paused < MAX_MS && !this.#budgets.isQuiet) {
      await caller.backoff.pause(pause);
      if (this.#loop !== loop) return;
      loop.beatAt = caller.now();
      loop.paused += pause;
      if (!this.#budgets.isDue(loop.beatAt)) continue;
      pause = await this.#flush(caller).then(
        ({ decisions }) => (decisions.length < BUSY_DECISIONS ? FLUSH_MS : BUSY_FLUSH_MS),
        () => Math.min(MAX_PAUSE_MS, 2 * pause),
      );
    }
    if (this.#loop === loop) this.#loop = null;
  }

  /** Delivers news. Returns the call. */
  async #flush(caller: LimiterCaller): Promise<LimiterCall> {
    const call = this.#budgets.compose(null, caller.now());
    await this.#send(call, caller);
    return call;
  }

  /**
   * Asks for a reservation.
   * @param all carries all decisions, so that the object knows the request
   */
  async ask(request: ReservationRequest, caller: LimiterCaller, all = false): Promise<ReservationResult> {
    const { reservation } = await this.#send(this.#budgets.compose(request, caller.now(), all), caller);
    return reservation!;
  }

  async #send(call: LimiterCall, caller: LimiterCaller): Promise<LimiterReply> {
    const sentAt = caller.now();
    try {
      const reply = await callObject(caller, this.#tenantId, (object) => object.exchange(call));
      this.#budgets.take(call, reply, sentAt, caller.randomHex(8));
      this.#failing = false;
      return reply;
    } catch (thrown) {
      this.#budgets.lose(call);
      this.#failing = true;
      throw thrown;
    } finally {
      this.keep(caller);
    }
  }
}

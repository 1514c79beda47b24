import type { LocalBudgets } from './local-budgets.ts';
import type { LimiterAnswer, LimiterCall, ReservationRequest } from './protocol.ts';

/** An isolate that holds slices calls the object this often, to learn which keys are blocked. */
const CONTACT_MS = 1_000;
/**
 * What the object has said about blocked keys counts for this long, or until a little after its next call.
 */
const BLOCKS_MS = 1_000;
const LATE_MS = 400;

/** An isolate's calls to a tenant's object. Pure: the clock is an argument (Unix milliseconds). */
export class Exchange {
  readonly #budgets: LocalBudgets;
  #calls = 0;
  #calledAt = 0;
  /** The latest call that the object has answered. */
  #answered = { sentAt: 0, nextInMs: 0 };

  constructor(budgets: LocalBudgets) {
    this.#budgets = budgets;
  }

  /** Returns whether a call is due at once, before the next regular one. */
  isUrgent(keyId: string | null, now: number): boolean {
    const { outbox, demand, slices } = this.#budgets;
    return outbox.isUrgent || (keyId !== null && demand.isWanted(keyId, now) && slices.isLow(keyId, now));
  }

  /** Returns whether the object has said a moment ago that this key, which holds a slice, is not blocked. */
  isKnownOpen(keyId: string, now: number): boolean {
    const { sentAt, nextInMs } = this.#answered;
    const age = now - sentAt;
    const isRecent = age >= 0 && age < Math.max(BLOCKS_MS, nextInMs + LATE_MS);
    return isRecent && this.#budgets.slices.of(keyId, now) !== null;
  }

  /**
   * Returns whether a regular call has anything to say, and the object wants it by now. Returns slices that
   * are out of date or idle.
   */
  isDue(now: number): boolean {
    const { outbox, demand, slices } = this.#budgets;
    demand.dropIdle(now);
    this.#budgets.returnSlices((keyId) => slices.of(keyId, now) === null || !demand.has(keyId));
    const { sentAt, nextInMs } = this.#answered;
    if (now >= sentAt && now < sentAt + nextInMs) return false;
    return outbox.hasNews(now) || (!slices.isEmpty && this.#calledAt + CONTACT_MS <= now);
  }

  /**
   * Composes the next call.
   * @param all carries all unconfirmed decisions, although another call may carry them
   */
  compose(reservation: ReservationRequest | null, now: number, all = false): LimiterCall {
    const { isolate, outbox, demand, slices } = this.#budgets;
    this.#calls += 1;
    this.#calledAt = now;
    return {
      isolate,
      number: this.#calls,
      ...outbox.next(now, all),
      reservation,
      sliceRequests: demand.next(slices, now),
    };
  }

  /**
   * Takes the object's answer.
   * @param sentAt when the call was composed
   * @param fresh a new id, in case that the object counts this isolate as lost
   */
  take(call: LimiterCall, answer: LimiterAnswer, sentAt: number, fresh: string): void {
    const budgets = this.#budgets;
    const { outbox, demand } = budgets;
    const { cursor, slices, blocked, nextInMs = 0 } = answer;
    if (call.isolate !== budgets.isolate) return;
    // Answers may overtake each other, and the clock may have stepped back.
    if (sentAt >= this.#answered.sentAt || this.#answered.sentAt > this.#calledAt)
      this.#answered = { sentAt, nextInMs };
    demand.nextInMs = nextInMs;
    for (const { keyId } of call.sliceRequests) demand.answered(keyId, sentAt);
    if (cursor === null) {
      budgets.restart(fresh);
      return;
    }
    outbox.confirm(cursor);
    for (const granted of slices) {
      demand.answered(granted.keyId);
      const old = budgets.slices.put(granted, sentAt);
      if (old !== null) outbox.add({ kind: 'returned', slice: old });
    }
    if (blocked.length > 0) budgets.returnSlices((keyId) => blocked.includes(keyId));
  }

  /** The call has failed. The object may have received it. */
  lose(call: LimiterCall): void {
    const { isolate, outbox, demand } = this.#budgets;
    if (call.isolate !== isolate) return;
    outbox.lose(call);
    for (const { keyId } of call.sliceRequests) demand.answered(keyId);
  }
}

import type { Price } from '../usage/price.ts';
import { reservationId } from '../usage/reservation-id.ts';
import { eachOf, NOTHING, type Spend } from './budget.ts';
import { KeySlices } from './key-slices.ts';
import { Outbox } from './outbox.ts';
import type {
  Claimant,
  LimiterCall,
  LimiterReply,
  ReservationRequest,
  SettlementRequest,
} from './protocol.ts';

/** A slice for running requests has at least so many tokens. */
const USEFUL_TOKENS = 64;
/** An isolate that holds slices calls the object this often, to learn which keys are blocked. */
const CONTACT_MS = 1_000;
/**
 * What the object has said about blocked keys counts for this long, or until a little after its next call.
 */
const BLOCKS_MS = 1_000;
const LATE_MS = 400;

export const isSome = ({ tokens, money }: Spend): boolean => tokens > 0 || money > 0;

/** What a running request has from the latest slice that it was charged to. */
interface Charged {
  readonly keyId: string;
  readonly slice: number;
  readonly spend: Spend;
  /** Number of its admission, if nothing but its end follows. */
  readonly admission: number | null;
}

/**
 * What one isolate holds of a tenant's budgets, what it decides without the object, and its calls. Nothing in
 * here survives the isolate: the object counts a slice as used until the isolate reports. Pure: the clock is
 * an argument (Unix milliseconds).
 */
export class LocalBudgets {
  readonly slices = new KeySlices();
  readonly outbox = new Outbox();
  readonly #running = new Map<string, Charged>();
  #isolate: string;
  #requests = 0;
  #calls = 0;
  #calledAt = 0;
  /** The latest call that the object has answered. */
  #lastReply = { sentAt: 0, nextInMs: 0 };

  /** @param isolate random and unique */
  constructor(isolate: string) {
    this.#isolate = isolate;
  }

  /** Returns whether nothing is left to tell the object, now or later. */
  get isQuiet(): boolean {
    return this.outbox.isEmpty && this.slices.isEmpty;
  }

  /** Returns a unique id for a request. It names its price and its slice; 0 = the object decides. */
  newId(name: string, price: Price | null, slice = 0): string {
    this.#requests += 1;
    return reservationId({ isolate: this.#isolate, slice, number: this.#requests, price, name });
  }

  /** Admits a request from the slice of its key. Returns its id; null if the object must decide. */
  admit(claimant: Claimant, name: string, now: number): string | null {
    const { keyId, tokens, money, model, price } = claimant;
    const spend = { tokens, money };
    this.slices.note(claimant, now);
    const cost = { requests: 1, slots: 1, tokens, money };
    const slice = this.outbox.isFull ? null : this.slices.take(keyId, cost, now);
    if (!slice) return null;
    const requestId = this.newId(name, price, slice.number);
    const { number } = slice;
    const admission = this.outbox.add({
      kind: 'admitted',
      requestId,
      slice: number,
      model,
      ...spend,
      at: now,
    });
    this.#running.set(requestId, { keyId, slice: number, spend, admission });
    return requestId;
  }

  /**
   * Charges more of a running request to the slice of its key: all that the claimant wants, or as much as is
   * left. Returns what was charged.
   */
  extend(claimant: Claimant, requestId: string, whole: boolean, now: number): Spend {
    const { keyId } = claimant;
    const useful = Math.min(1, USEFUL_TOKENS / claimant.tokens);
    this.slices.note({ ...claimant, ...eachOf((name) => Math.ceil(claimant[name] * useful)) }, now);
    const left = this.outbox.isFull ? null : this.slices.of(keyId, now)?.left;
    if (!left) return NOTHING;
    const spend = eachOf((name) =>
      whole ? claimant[name] : Math.min(claimant[name], left[name] ?? Infinity),
    );
    const slice = isSome(spend) ? this.slices.take(keyId, spend, now) : null;
    if (!slice) return NOTHING;
    const before = this.#running.get(requestId);
    const spent = before?.slice === slice.number ? before.spend : NOTHING;
    const charged = eachOf((name) => spend[name] + spent[name]);
    this.#running.set(requestId, { keyId, slice: slice.number, spend: charged, admission: null });
    this.outbox.add({ kind: 'extended', requestId, slice: slice.number, ...spend });
    return spend;
  }

  /** @param unused what the request has reserved and not spent */
  settle(request: SettlementRequest, unused: Spend): void {
    const { requestId, inquire = false } = request;
    const charged = this.#running.get(requestId);
    this.#running.delete(requestId);
    this.outbox.renew(requestId, null);
    // What the object has reserved itself expires there.
    if (charged === undefined && this.outbox.isFull) return;
    const refund = charged ? this.#refund(charged, unused, inquire) : null;
    this.outbox.end({ ...request, refund }, charged?.admission ?? null);
  }

  /** The object refunds the rest, and what a request holds whose usage is not known yet. */
  #refund(
    { keyId, slice, spend }: Charged,
    unused: Spend,
    inquire: boolean,
  ): (Spend & { slice: number }) | null {
    const refund = eachOf((name) => (inquire ? 0 : Math.min(Math.max(0, unused[name]), spend[name])));
    return this.slices.refund(keyId, slice, { ...refund, slots: 1 }) ? { slice, ...refund } : null;
  }

  /** Returns the slices of the selected keys to the object. */
  returnSlices(isSelected: (keyId: string) => boolean): void {
    this.#returned(this.slices.drop(isSelected));
  }

  #returned(slices: readonly number[]): void {
    for (const slice of slices) this.outbox.add({ kind: 'returned', slice });
  }

  /**
   * Returns whether the object counts a slice of this key, or of any key if null, that has not been returned.
   */
  mayHold(keyId: string | null, now: number): boolean {
    const held = keyId === null ? !this.slices.isEmpty : this.slices.of(keyId, now) !== null;
    return held || this.slices.isAsking(keyId, now);
  }

  /** Returns whether a call is due at once, before the next regular one. */
  isUrgent(keyId: string | null, now: number): boolean {
    return this.outbox.isUrgent || (keyId !== null && this.slices.isUrgent(keyId, now));
  }

  /** Returns whether the object has said a moment ago that this key, which holds a slice, is not blocked. */
  isKnownOpen(keyId: string, now: number): boolean {
    const { sentAt, nextInMs } = this.#lastReply;
    const age = now - sentAt;
    const isRecent = age >= 0 && age < Math.max(BLOCKS_MS, nextInMs + LATE_MS);
    return isRecent && this.slices.of(keyId, now) !== null;
  }

  /**
   * Returns whether a regular call has anything to say, and the object wants it by now. Returns slices that
   * are out of date or idle.
   */
  isDue(now: number): boolean {
    this.#returned(this.slices.dropOld(now));
    const { sentAt, nextInMs } = this.#lastReply;
    if (now >= sentAt && now < sentAt + nextInMs) return false;
    return this.outbox.hasNews(now) || (!this.slices.isEmpty && this.#calledAt + CONTACT_MS <= now);
  }

  /**
   * Composes the next call.
   * @param all carries all unconfirmed decisions, although another call may carry them
   */
  compose(reservation: ReservationRequest | null, now: number, all = false): LimiterCall {
    this.#calls += 1;
    this.#calledAt = now;
    return {
      isolate: this.#isolate,
      number: this.#calls,
      ...this.outbox.next(now, all),
      reservation,
      sliceRequests: this.slices.next(now),
    };
  }

  /**
   * Takes the object's reply.
   * @param sentAt when the call was composed
   * @param fresh a new id, in case that the object counts this isolate as lost
   */
  take(call: LimiterCall, reply: LimiterReply, sentAt: number, fresh: string): void {
    const { cursor, slices, blocked, nextInMs = 0 } = reply;
    if (call.isolate !== this.#isolate) return;
    // Replies may overtake each other, and the clock may have stepped back.
    if (sentAt >= this.#lastReply.sentAt || this.#lastReply.sentAt > this.#calledAt)
      this.#lastReply = { sentAt, nextInMs };
    this.slices.nextInMs = nextInMs;
    for (const { keyId } of call.sliceRequests) this.slices.replied(keyId, sentAt);
    if (cursor === null) {
      this.#restart(fresh);
      return;
    }
    this.outbox.confirm(cursor);
    for (const granted of slices) {
      this.slices.replied(granted.keyId);
      const old = this.slices.put(granted, sentAt);
      if (old !== null) this.#returned([old]);
    }
    if (blocked.length > 0) this.returnSlices((keyId) => blocked.includes(keyId));
  }

  /** The call has failed. The object may have received it. */
  lose(call: LimiterCall): void {
    if (call.isolate !== this.#isolate) return;
    this.outbox.lose(call);
    for (const { keyId } of call.sliceRequests) this.slices.replied(keyId);
  }

  /** Starts anew with a new id: the object has settled this isolate's requests as those of a lost one. */
  #restart(isolate: string): void {
    this.#isolate = isolate;
    this.slices.drop(() => true);
    this.#running.clear();
    // Streams that still run are settled under their own ids.
    this.outbox.restart();
  }
}

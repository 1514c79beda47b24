import type {
  Claimant,
  Decision,
  Gauge,
  LimiterAnswer,
  LimiterCall,
  Renewal,
  ReservationRequest,
  SettlementRequest,
  Spend,
} from '../../env/limiter-protocol.ts';
import type { Price } from '../../prices/price.ts';
import { reservationId } from '../../usage/reservation-id.ts';
import { eachOf, NOTHING } from './budget.ts';
import { HeldSlices } from './held-slices.ts';
import { headersOf } from './rate-limit-headers.ts';
import { resetIn } from './window.ts';

/** A key without requests for this long returns its slice. A key with requests further apart gets none. */
export const IDLE_MS = 2_000;
/** An isolate that holds slices calls home this often, to learn which keys are blocked. */
const CONTACT_MS = 1_000;
/** Ended requests that make a call due at once. */
const MANY_ENDED = 100;
/** A call that has not returned by then counts as lost. */
const CALL_MS = 2_000;
/** If home has too little left for a slice, the isolate asks again after this time. */
const DENIED_MS = 500;
/** A slice for running requests has at least so many tokens. */
const USEFUL_TOKENS = 64;
/** With so many decisions to tell home, an isolate makes no more, to forget none while home is away. */
const MAX_DECISIONS = 10_000;

/** A running request that is charged to a slice: the latest one, and what it has from that slice. */
interface ChargedRequest {
  readonly keyId: string;
  readonly slice: number;
  readonly spend: Spend;
}

interface KeyUse {
  /** Of its latest request. */
  request: LimiterCall['sliceRequests'][number];
  usedAt: number;
  /** It has been used within IDLE_MS of its previous request, and no slice has been requested since. */
  wantsSlice: boolean;
  /** A slice has been requested, and home may answer until then. */
  askedUntil: number;
  /** Home has too little left for a slice. */
  deniedUntil: number;
}

/**
 * What one isolate holds of a tenant's budgets, and the journal of what it has decided. Nothing in here
 * survives the isolate: home counts a slice as used until the isolate reports. Pure: the clock is an argument
 * (Unix milliseconds).
 */
export class Purse {
  readonly #slices = new HeldSlices();
  readonly #running = new Map<string, ChargedRequest>();
  readonly #keys = new Map<string, KeyUse>();
  #isolate: string;
  #requests = 0;
  #calls = 0;
  /** Decisions that home has not confirmed, oldest first. */
  #journal: Decision[] = [];
  /** Number of the last confirmed decision. */
  #confirmed = 0;
  /** A call carries all decisions up to this number, unless it was lost by then. */
  #carried = { to: 0, until: 0 };
  #renewals = new Map<string, Renewal>();
  #ended = 0;
  #contactAt = 0;

  /** @param isolate random and unique */
  constructor(isolate: string) {
    this.#isolate = isolate;
  }

  /** Returns a unique id for a request. It names its price and its slice; 0 = home decides. */
  nameOf(name: string, price: Price | null, slice = 0): string {
    this.#requests += 1;
    return reservationId({ isolate: this.#isolate, slice, number: this.#requests, price, name });
  }

  /** Admits a request from the slice of its key. Returns its id; null if home must decide. */
  admit(claimant: Claimant, name: string, now: number): string | null {
    const { keyId, tokens, money, model, price } = claimant;
    const spend = { tokens, money };
    this.#note(claimant, now);
    const slice = this.#isFull ? null : this.#slices.take(keyId, spend, now);
    if (!slice) return null;
    const requestId = this.nameOf(name, price, slice.number);
    this.#running.set(requestId, { keyId, slice: slice.number, spend });
    this.#journal.push({ kind: 'admitted', requestId, slice: slice.number, model, ...spend, at: now });
    return requestId;
  }

  /** Charges more to the slice of the claimant's key, for a running request: see `TenantLimiterClient`. */
  extend(claimant: Claimant, requestId: string, whole: boolean, now: number): Spend {
    const { keyId, tokens, money } = claimant;
    const useful = Math.min(1, USEFUL_TOKENS / tokens);
    this.#note({ ...claimant, tokens: Math.ceil(tokens * useful), money: Math.ceil(money * useful) }, now);
    const taken = this.#isFull ? null : this.#slices.takeMore(keyId, { tokens, money }, whole, now);
    if (!taken) return NOTHING;
    const before = this.#running.get(requestId);
    const spent = before?.slice === taken.slice ? before.spend : NOTHING;
    const spend = eachOf((name) => taken.spend[name] + spent[name]);
    this.#running.set(requestId, { keyId, slice: taken.slice, spend });
    this.#journal.push({ kind: 'extended', requestId, slice: taken.slice, ...taken.spend });
    return taken.spend;
  }

  /** @param unused what the request has reserved and not spent */
  settle(request: SettlementRequest, unused: Spend): void {
    const { requestId, inquire = false } = request;
    const charged = this.#running.get(requestId);
    this.#running.delete(requestId);
    this.#renewals.delete(requestId);
    // What home has reserved itself expires there.
    if (charged === undefined && this.#isFull) return;
    this.#ended += 1;
    // Home refunds the rest, and what a request holds whose usage is not known yet.
    const spend = eachOf((name) =>
      inquire ? 0 : Math.min(Math.max(0, unused[name]), charged?.spend[name] ?? 0),
    );
    const refunded = charged !== undefined && this.#slices.refund(charged.keyId, charged.slice, spend);
    const refund = refunded ? { slice: charged.slice, ...spend } : null;
    this.#journal.push({ ...request, kind: 'settled', refund });
  }

  renew(requestId: string, renewal: Renewal): void {
    this.#renewals.set(requestId, renewal);
  }

  /** Returns slices to home: those of one key, or all. What is left there may suffice together with them. */
  giveBack(keyId: string | null): void {
    this.#return((key) => keyId === null || key === keyId);
  }

  /** Returns whether home counts a slice of this key, or of any key if null, that has not been returned. */
  mayHold(keyId: string | null, now: number): boolean {
    const held = keyId === null ? !this.#slices.isEmpty : this.#slices.of(keyId, now) !== null;
    return held || this.isAsking(keyId, now);
  }

  /** Returns whether a call under way asks for a slice of this key, or of any key if null. */
  isAsking(keyId: string | null, now: number): boolean {
    const asked = (key: KeyUse | undefined) => key !== undefined && key.askedUntil > now;
    return keyId === null ? [...this.#keys.values()].some(asked) : asked(this.#keys.get(keyId));
  }

  /** Returns whether a call is due at once, before the next regular one. */
  isUrgent(keyId: string | null, now: number): boolean {
    return this.#ended >= MANY_ENDED || (keyId !== null && this.#needsSlice(keyId, now));
  }

  /** Returns whether a regular call has anything to say. Returns slices that are out of date or idle. */
  isDue(now: number): boolean {
    for (const [keyId, { usedAt, askedUntil }] of this.#keys) {
      if (now - usedAt >= IDLE_MS && askedUntil <= now) this.#keys.delete(keyId);
    }
    this.#return((keyId) => this.#slices.of(keyId, now) === null || !this.#keys.has(keyId));
    if (this.#renewals.size > 0 || this.#hasUncarried(now)) return true;
    return !this.#slices.isEmpty && this.#contactAt + CONTACT_MS <= now;
  }

  /** Returns whether nothing is left to tell home, now or later. */
  get isQuiet(): boolean {
    return this.#journal.length === 0 && this.#slices.isEmpty && this.#renewals.size === 0;
  }

  /**
   * Composes the next call.
   * @param all carries all unconfirmed decisions, although another call may carry them
   */
  compose(reservation: ReservationRequest | null, now: number, all = false): LimiterCall {
    const carries = all || this.#hasUncarried(now);
    const decisions = carries ? [...this.#journal] : [];
    if (carries) this.#carried = { to: this.#confirmed + this.#journal.length, until: now + CALL_MS };
    const renewals = [...this.#renewals].map(([requestId, renewal]) => ({ requestId, ...renewal }));
    this.#renewals = new Map();
    this.#ended = 0;
    this.#contactAt = now;
    const sliceRequests = [...this.#keys].flatMap(([keyId, key]) => {
      if (!this.#needsSlice(keyId, now)) return [];
      key.askedUntil = now + CALL_MS;
      key.wantsSlice = false;
      return [key.request];
    });
    const first = this.#confirmed + 1;
    this.#calls += 1;
    const call = { isolate: this.#isolate, number: this.#calls, first, decisions };
    return { ...call, renewals, reservation, sliceRequests };
  }

  /**
   * Takes home's answer.
   * @param sentAt when the call was composed: slices live from then on, never longer than home assumes
   * @param fresh a new id, in case that home has given this isolate up
   */
  take(call: LimiterCall, { cursor, slices, blocked }: LimiterAnswer, sentAt: number, fresh: string): void {
    if (call.isolate !== this.#isolate) return;
    for (const { keyId } of call.sliceRequests) this.#answered(keyId, sentAt + DENIED_MS);
    if (cursor === null) {
      this.#restart(fresh);
      return;
    }
    this.#journal.splice(0, Math.max(0, cursor - this.#confirmed));
    this.#confirmed = Math.max(this.#confirmed, cursor);
    for (const { keyId, number, amounts, lifeMs, status } of slices) {
      const expiresAt = sentAt + lifeMs;
      const slice = { number, granted: amounts, left: { ...amounts }, lifeMs, expiresAt, status };
      this.#answered(keyId, 0);
      const old = this.#slices.put(keyId, slice);
      if (old !== null) this.#journal.push({ kind: 'returned', slice: old });
    }
    if (blocked.length > 0) this.#return((keyId) => blocked.includes(keyId));
  }

  /** The call has failed. Home may have received it. */
  lose(call: LimiterCall): void {
    if (call.isolate !== this.#isolate) return;
    if (call.decisions.length > 0) this.#carried = { to: 0, until: 0 };
    for (const { requestId, ...renewal } of call.renewals) {
      if (!this.#renewals.has(requestId)) this.#renewals.set(requestId, renewal);
    }
    for (const { keyId } of call.sliceRequests) this.#answered(keyId, 0);
  }

  /** Returns `x-ratelimit-*` headers from the key's slice; null without one. */
  rateLimitHeaders(keyId: string, now: number): Record<string, string> | null {
    const slice = this.#slices.of(keyId, now);
    if (!slice) return null;
    const { status, left } = slice;
    const resetMs = resetIn([[Math.floor(now / 1000), 1]], now);
    const gauge = (home: Gauge | null, here: number | null): Gauge | null =>
      home && { limit: home.limit, remaining: home.remaining + (here ?? 0), resetMs };
    return headersOf({
      requests: gauge(status.requests, left.requests),
      tokens: gauge(status.tokens, left.tokens),
    });
  }

  #note({ model: _, price: __, ...request }: Claimant, now: number): void {
    const { keyId } = request;
    const entry = this.#keys.get(keyId);
    if (entry) {
      entry.wantsSlice = now - entry.usedAt < IDLE_MS;
      entry.usedAt = now;
      entry.request = request;
    } else {
      this.#keys.set(keyId, { request, usedAt: now, wantsSlice: false, askedUntil: 0, deniedUntil: 0 });
    }
  }

  #needsSlice(keyId: string, now: number): boolean {
    const { wantsSlice = false, askedUntil = 0, deniedUntil = 0 } = this.#keys.get(keyId) ?? {};
    return wantsSlice && Math.max(askedUntil, deniedUntil) <= now && this.#slices.isLow(keyId, now);
  }

  #answered(keyId: string, deniedUntil: number): void {
    const key = this.#keys.get(keyId);
    if (key) Object.assign(key, { askedUntil: 0, deniedUntil });
  }

  get #isFull(): boolean {
    return this.#journal.length >= MAX_DECISIONS;
  }

  #return(isSelected: Parameters<HeldSlices['drop']>[0]): void {
    for (const slice of this.#slices.drop(isSelected)) this.#journal.push({ kind: 'returned', slice });
  }

  /** Returns whether there are decisions that no call under way carries. */
  #hasUncarried(now: number): boolean {
    const last = this.#confirmed + this.#journal.length;
    if (this.#carried.until <= now) return this.#journal.length > 0;
    return last > this.#carried.to;
  }

  /** Starts anew: home has settled the requests of this isolate as those of a vanished one. */
  #restart(fresh: string): void {
    this.#isolate = fresh;
    this.#slices.drop(() => true);
    this.#running.clear();
    // Streams that still run are settled under their own ids.
    this.#journal = this.#journal.flatMap((decision) =>
      decision.kind === 'settled' ? [{ ...decision, refund: null }] : [],
    );
    this.#confirmed = 0;
    this.#carried = { to: 0, until: 0 };
  }
}

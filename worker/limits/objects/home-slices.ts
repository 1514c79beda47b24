import type { ListedAccount } from '@continuo/shared/usage.ts';
import { isEndUser } from '../end-user.ts';
import { budgetOf, eachOf } from '../quota/budget.ts';
import type {
  Decision,
  GrantedSlice,
  LimiterAnswer,
  LimiterCall,
  ReservationRequest,
  ReservationResult,
  SliceRequest,
} from '../quota/protocol.ts';
import { rateLimitStatus } from '../quota/rate-limit-headers.ts';
import {
  draw,
  drawSpend,
  end,
  grant,
  holderOf,
  refund,
  release,
  SLICE_GRACE_MS,
  type Slice,
} from '../quota/slice.ts';
import { type QuotaState, reservedBy, type Subject } from '../quota/state.ts';
import { numberOf, priceOf, sliceOf } from '../usage/reservation-id.ts';
import { spendOf } from '../usage/usage-record.ts';
import { wasAway } from './alarm-clock.ts';
import { CallPace, MAX_NEXT_MS } from './call-pace.ts';
import type { IsolateState, LimiterStorage } from './limiter-storage.ts';
import { type OpenRequests, subjectsOf } from './open-requests.ts';

/** Learns the limits of subjects from calls. */
interface LimitReader {
  know(subjects: readonly Subject[], tenantId: string, quota: QuotaState): void;
}

/** Silent isolates' requests are asked for again after this, while upstreams keep accounts. */
const ASK_AGAIN_MS = 10_000;
const ASK_FOR_MS = 600_000;
/** An isolate returns a slice within this time after its life, even if it has to repeat the call. */
const RETURN_MS = 5_000 + MAX_NEXT_MS;
/** Pause of a running request while isolates hold slices. */
const HELD_MS = 500;
const RECENT_CALLS = 100_000;
/** An isolate without slices is forgotten after this time. */
const FORGET_MS = 3_600_000;

/** The slices of all isolates of one tenant, kept with its counters. */
export class HomeSlices {
  readonly #requests: OpenRequests;
  readonly #quota: QuotaState;
  readonly #isolates: Map<string, IsolateState>;
  readonly #storage: Pick<LimiterStorage, 'saveIsolate'>;
  readonly #limits: LimitReader;
  /** Names of recent calls. Connections, and what they may repeat, end with the object. */
  readonly #calls = new Set<string>();
  readonly #pace = new CallPace();
  /** Number of slices that are charged to a subject. */
  readonly #charged = new Map<string, number>();
  /** Unix milliseconds before which no slice ends: saves a look at all of them per call. */
  #firstEnd = 0;

  constructor(
    requests: OpenRequests,
    storage: Pick<LimiterStorage, 'loadIsolates' | 'saveIsolate'>,
    limits: LimitReader,
  ) {
    this.#requests = requests;
    this.#quota = requests.quota;
    this.#storage = storage;
    this.#limits = limits;
    this.#isolates = storage.loadIsolates();
    for (const { slices } of this.#isolates.values()) for (const slice of slices) this.#count(slice, 1);
  }

  #count({ subjects }: Slice, change: 1 | -1): void {
    for (const id of subjects) {
      const count = (this.#charged.get(id) ?? 0) + change;
      if (count === 0) this.#charged.delete(id);
      else this.#charged.set(id, count);
    }
  }

  /**
   * Applies an isolate's decisions, then decides its reservation and grants new slices, in one commit.
   * @throws Error if the call has arrived before
   */
  exchange(call: LimiterCall, now: number): LimiterAnswer {
    const { isolate, first, renewals, reservation, sliceRequests } = call;
    this.#noteCall(`${isolate}.${call.number}`);
    this.endDue(now);
    const stored = this.#isolates.get(isolate);
    // Home forgets only isolates that hold nothing, so one with earlier decisions has been given up.
    const gone = stored?.gone ?? (stored === undefined && first > 1);
    const state = stored ?? { cursor: 0, granted: 0, named: 0, slices: [], heardAt: now };
    const before = state.cursor;
    if (!gone) this.#applyAll(state, call, now);
    delete state.silentSince;
    for (const { requestId, ...renewal } of renewals) this.#requests.renew(requestId, renewal, now);
    const result = reservation && this.#reserve(reservation, now);
    // What a slice would take could admit the same request a moment later.
    const mayGrant = !gone && result?.admitted !== false;
    const slices = !mayGrant ? [] : sliceRequests.flatMap((holder) => this.#grant(state, holder, now) ?? []);
    const isNews = state.cursor > before || slices.length > 0;
    if (isNews || (state.slices.length > 0 && now - state.heardAt >= 1_000)) {
      if (!stored) this.#forgetOld(now);
      state.heardAt = now;
      this.#isolates.set(isolate, state);
      // A restart may take an isolate for silent that has only called: its next call corrects that.
      this.#storage.saveIsolate(isolate, state, isNews);
    }
    const blocked = state.slices.map(({ keyId }) => keyId).filter((keyId) => this.#requests.isBlocked(keyId));
    const nextInMs = this.#pace.next(now);
    return { cursor: gone ? null : state.cursor, reservation: result, slices, blocked, nextInMs };
  }

  /** @throws Error if the call has arrived before */
  #noteCall(name: string): void {
    if (this.#calls.has(name)) throw new Error('This call has arrived before.');
    const [oldest] = this.#calls.add(name);
    if (this.#calls.size > RECENT_CALLS) this.#calls.delete(oldest!);
  }

  /** Counts silent isolates' slices as spent, and takes back those that an isolate has never received. */
  endDue(now: number): void {
    if (now < this.#firstEnd) return;
    for (const [isolate, state] of this.#isolates) {
      const due = state.slices.filter(({ ended, endsAt }) => !ended && endsAt <= now);
      if (due.length === 0) continue;
      for (const slice of due) {
        // An isolate that has called since would have returned it.
        if (state.heardAt >= slice.endsAt - SLICE_GRACE_MS + RETURN_MS) this.#remove(state, slice);
        // While home was away, no isolate could call.
        else if (wasAway(slice.endsAt, now)) slice.endsAt = now + SLICE_GRACE_MS;
        else {
          end(this.#quota, slice, now);
          state.silentSince ??= now;
        }
        this.#requests.touch(slice.subjects);
      }
      this.#storage.saveIsolate(isolate, state, true);
    }
    this.#firstEnd = this.nextEnd() ?? Infinity;
  }

  #remove(state: IsolateState, slice: Slice): void {
    release(this.#quota, slice);
    this.#count(slice, -1);
    state.slices = state.slices.filter((kept) => kept !== slice);
  }

  /** Unix milliseconds before which no slice ends; maybe too early. */
  get firstEnd(): number | null {
    return this.#firstEnd === Infinity ? null : this.#firstEnd;
  }

  /** Unix milliseconds at which the next slice ends if its isolate stays silent; null without slices. */
  nextEnd(): number | null {
    let next: number | null = null;
    for (const { slices } of this.#isolates.values()) {
      for (const { endsAt } of slices) next = Math.min(next ?? endsAt, endsAt);
    }
    return next;
  }

  /** Ids of the silent isolates to give up. Upstreams know their last requests by these ids. */
  silent(now: number): string[] {
    const ended = ({ slices }: IsolateState) => slices.some((slice) => slice.ended && slice.endsAt <= now);
    return [...this.#isolates].filter(([, state]) => ended(state)).map(([isolate]) => isolate);
  }

  /**
   * Gives a silent isolate up: adopts the requests that it has not reported, and takes back the rest of its
   * slices.
   * @param accounts null if the upstreams do not answer; then the isolate stays silent for a while
   */
  giveUp(isolate: string, accounts: readonly ListedAccount[] | null, now: number): void {
    const state = this.#isolates.get(isolate);
    if (!state?.slices.some(({ ended }) => ended)) return;
    if (accounts === null && now - (state.silentSince ?? now) < ASK_FOR_MS) {
      for (const slice of state.slices) slice.endsAt = Math.max(slice.endsAt, now + ASK_AGAIN_MS);
    } else {
      for (const account of accounts ?? []) this.#adopt(state, account, now);
      for (const slice of state.slices) {
        this.#remove(state, slice);
        this.#requests.touch(slice.subjects);
      }
      Object.assign(state, { gone: true, heardAt: now });
    }
    this.#storage.saveIsolate(isolate, state, true);
  }

  #adopt(state: IsolateState, listed: ListedAccount, now: number): void {
    const { account, model, usage, ageMs } = listed;
    const slice = state.slices.find(({ number }) => number === sliceOf(account));
    if (!slice || numberOf(account) <= state.named) {
      this.#extend(state, listed, now);
      return;
    }
    const { tenantId, keyId, ttlMs, left } = slice;
    const used = spendOf(priceOf(account), usage);
    const spend = eachOf((name) => Math.min(used[name], left[name] ?? Infinity));
    const reservation = draw(this.#quota, slice, { id: account, spend }, now);
    this.#requests.adopt(
      { requestId: account, tenantId, keyId, model, ttlMs },
      reservation,
      now - ageMs,
      now,
    );
  }

  /** The isolate may have given a known request more of a slice, and not have reported it. */
  #extend(state: IsolateState, { account, usage }: ListedAccount, now: number): void {
    const open = this.#requests.find(account);
    // Slices pay for nothing that counts for an end user.
    if (!open || open.reservation.subjects.some(isEndUser)) return;
    const used = spendOf(priceOf(account), usage);
    const reserved = reservedBy(open.reservation);
    let missing = eachOf((name) => Math.max(0, used[name] - reserved[name]));
    for (const slice of state.slices.filter(({ keyId }) => keyId === open.record.keyId)) {
      const spend = eachOf((name) => Math.min(missing[name], slice.left[name] ?? Infinity));
      this.#requests.extend(account, drawSpend(this.#quota, slice, spend, now));
      missing = eachOf((name) => missing[name] - spend[name]);
    }
  }

  /** A running request waits for what isolates hold unused, because a refusal ends it. */
  #reserve(request: ReservationRequest, now: number): ReservationResult {
    const slices = () => [...this.#isolates.values()].flatMap((isolate) => isolate.slices.map(holderOf));
    this.#limits.know(subjectsOf(request), request.tenantId, this.#quota);
    const result = this.#requests.reserve(request, now, slices);
    if (request.raise !== 'growth' || result.admitted || typeof result.refusal === 'string') return result;
    const { kind, subject } = result.refusal;
    const { resource } = budgetOf(kind === 'too_large' ? 'tokens' : kind);
    const holdsSome = ({ ended, subjects, left }: Slice) =>
      !ended && subjects.includes(subject) && (left[resource] ?? 0) > 0;
    const isHeld = [...this.#isolates.values()].some(({ slices }) => slices.some(holdsSome));
    if (!isHeld) return result;
    const retryAfterMs = Math.min(HELD_MS, result.refusal.retryAfterMs ?? HELD_MS);
    return { ...result, refusal: { ...result.refusal, retryAfterMs, held: true } };
  }

  #applyAll(state: IsolateState, { first, decisions }: LimiterCall, now: number): void {
    for (const [index, decision] of decisions.entries()) {
      if (first + index <= state.cursor) continue;
      state.cursor = first + index;
      this.#apply(state, decision, now);
    }
  }

  #apply(state: IsolateState, decision: Decision, now: number): void {
    const held = (number: number) => state.slices.find((slice) => slice.number === number);
    if (decision.kind === 'settled') {
      this.#requests.settle(decision, now);
      const slice = decision.refund && held(decision.refund.slice);
      if (slice) {
        refund(this.#quota, slice, decision.refund);
        this.#requests.touch(slice.subjects);
      }
      return;
    }
    // Home keeps a slice until the isolate has returned it, so only a forged decision names an unknown one.
    const slice = held(decision.slice);
    if (!slice) return;
    this.#requests.touch(slice.subjects);
    if (decision.kind === 'returned') {
      this.#remove(state, slice);
      return;
    }
    const { requestId, tokens, money } = decision;
    const spend = { tokens, money };
    if (decision.kind === 'extended') {
      this.#requests.extend(requestId, drawSpend(this.#quota, slice, spend, now));
      return;
    }
    const { model } = decision;
    // The isolate's clock may be wrong.
    const at = Math.min(now, Math.max(decision.at, slice.second * 1000));
    state.named = numberOf(requestId);
    const { tenantId, keyId, ttlMs } = slice;
    const reservation = draw(this.#quota, slice, { id: requestId, spend }, now);
    this.#requests.add({ requestId, tenantId, keyId, model, ttlMs }, reservation, at);
  }

  #grant(state: IsolateState, holder: SliceRequest, now: number): GrantedSlice | null {
    const { tenantId, keyId, ttlMs } = holder;
    if (this.#requests.isBlocked(keyId)) return null;
    const subjects = subjectsOf(holder);
    this.#limits.know(subjects, tenantId, this.#quota);
    const owner = { number: state.granted + 1, tenantId, keyId, ttlMs };
    const slices = (subject: string) => this.#charged.get(subject) ?? 0;
    const slice = grant(this.#quota, { subjects, owner, min: holder, most: holder.most, slices }, now);
    if (!slice) return null;
    this.#count(slice, 1);
    this.#firstEnd = Math.min(this.#firstEnd, slice.endsAt);
    state.granted = slice.number;
    state.slices.push(slice);
    this.#requests.touch(slice.subjects);
    const { number, left, lifeMs } = slice;
    const status = rateLimitStatus(this.#quota, subjects, now);
    return { keyId, number, amounts: { ...left }, lifeMs, status };
  }

  #forgetOld(now: number): void {
    for (const [isolate, { slices, heardAt }] of this.#isolates) {
      if (slices.length > 0 || heardAt > now - FORGET_MS) continue;
      this.#isolates.delete(isolate);
      this.#storage.saveIsolate(isolate, null, true);
    }
  }
}

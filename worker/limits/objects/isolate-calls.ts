import { budgetOf } from '../quota/budget.ts';
import type {
  Decision,
  LimiterCall,
  LimiterReply,
  ReservationRequest,
  ReservationResult,
  SettledRequest,
} from '../quota/protocol.ts';
import { draw, drawSpend, refund, type Slice } from '../quota/slice.ts';
import type { Counters } from '../quota/state.ts';
import { numberOf } from '../usage/reservation-id.ts';
import { CallPace } from './call-pace.ts';
import type { IsolateSlices } from './isolate-slices.ts';
import type { IsolateState } from './isolate-state.ts';
import { type OpenRequests, subjectsOf } from './open-requests.ts';

/** Pause of a running request while isolates hold slices. */
const HELD_MS = 500;
const RECENT_CALLS = 100_000;

const findSlice = ({ slices }: IsolateState, number: number): Slice | undefined =>
  slices.find((slice) => slice.number === number);

/** The calls of a tenant's isolates: what they have decided, and what the object decides and grants. */
export class IsolateCalls {
  readonly #requests: OpenRequests;
  readonly #counters: Counters;
  readonly #slices: IsolateSlices;
  /** Names of recent calls. Connections, and what they may repeat, end with the object. */
  readonly #calls = new Set<string>();
  readonly #pace = new CallPace();

  constructor(slices: IsolateSlices, requests: OpenRequests) {
    this.#slices = slices;
    this.#requests = requests;
    this.#counters = requests.counters;
  }

  /**
   * Applies an isolate's decisions, then decides its reservation and grants new slices, in one commit.
   * @throws Error if the call has arrived before
   */
  exchange(call: LimiterCall, now: number): LimiterReply {
    const { isolate, first, renewals, reservation, sliceRequests } = call;
    this.#noteCall(`${isolate}.${call.number}`);
    this.#slices.endDue(now);
    const stored = this.#slices.find(isolate);
    // The object forgets only isolates that hold nothing, so one with earlier decisions was lost.
    const gone = stored?.gone ?? (stored === undefined && first > 1);
    const state = stored ?? { cursor: 0, granted: 0, named: 0, slices: [], heardAt: now };
    const before = state.cursor;
    if (!gone) this.#applyAll(state, call, now);
    delete state.lostSince;
    for (const { requestId, ...renewal } of renewals) this.#requests.renew(requestId, renewal, now);
    const result = reservation && this.#reserve(reservation, now);
    // What a slice would take could admit the same request a moment later.
    const mayGrant = !gone && result?.admitted !== false;
    const grants = mayGrant ? sliceRequests : [];
    const slices = grants.flatMap((holder) => this.#slices.grant(state, holder, now) ?? []);
    if (!stored) this.#slices.forgetOld(now);
    // A restart may take an isolate for lost that has only called: its next call corrects that.
    state.heardAt = now;
    if (state.cursor > before || slices.length > 0) this.#slices.save(isolate, state);
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

  #applyAll(state: IsolateState, { first, decisions }: LimiterCall, now: number): void {
    for (const [index, decision] of decisions.entries()) {
      if (first + index <= state.cursor) continue;
      state.cursor = first + index;
      this.#apply(state, decision, now);
    }
  }

  #apply(state: IsolateState, decision: Decision, now: number): void {
    if (decision.kind === 'settled') {
      this.#settle(state, decision, now);
      return;
    }
    // The object keeps a slice until the isolate has returned it, so only a forged decision names an unknown
    // one.
    const slice = findSlice(state, decision.slice);
    if (!slice) return;
    if (decision.kind === 'returned') {
      this.#slices.remove(state, slice);
      return;
    }
    const { requestId, tokens, money } = decision;
    const spend = { tokens, money };
    if (decision.kind === 'extended') {
      this.#requests.extend(requestId, drawSpend(this.#counters, slice, spend, now));
      return;
    }
    const { model, end } = decision;
    // The isolate's clock may be wrong.
    const at = Math.min(now, Math.max(decision.at, slice.second * 1000));
    state.named = numberOf(requestId);
    const { tenantId, keyId, ttlMs } = slice;
    const reservation = draw(this.#counters, slice, { id: requestId, spend }, now);
    this.#requests.add({ requestId, tenantId, keyId, model, ttlMs }, reservation, at);
    if (end) this.#settle(state, { requestId, ...end }, now);
  }

  #settle(state: IsolateState, settled: SettledRequest, now: number): void {
    this.#requests.settle(settled, now);
    const slice = settled.refund && findSlice(state, settled.refund.slice);
    if (slice) refund(this.#counters, slice, settled.refund!);
  }

  /** A running request waits for what isolates hold unused, because a refusal ends it. */
  #reserve(request: ReservationRequest, now: number): ReservationResult {
    this.#slices.know(subjectsOf(request), request.tenantId);
    const result = this.#requests.reserve(request, now, () => this.#slices.holders());
    if (request.raise !== 'growth' || result.admitted || typeof result.refusal === 'string') return result;
    const { kind, subject } = result.refusal;
    const { resource } = budgetOf(kind === 'too_large' ? 'tokens' : kind);
    if (!this.#slices.holdsUnused(subject, resource)) return result;
    const retryAfterMs = Math.min(HELD_MS, result.refusal.retryAfterMs ?? HELD_MS);
    return { ...result, refusal: { ...result.refusal, retryAfterMs, held: true } };
  }
}

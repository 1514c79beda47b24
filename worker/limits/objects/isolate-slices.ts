import type { Resource } from '../quota/budget.ts';
import type { GrantedSlice, SliceRequest } from '../quota/protocol.ts';
import { rateLimitStatus } from '../quota/rate-limit-headers.ts';
import { end, grant, holderOf, release, SLICE_GRACE_MS, type Slice } from '../quota/slice.ts';
import type { Counters, Holder, Subject } from '../quota/state.ts';
import { wasAway } from './alarm-clock.ts';
import { MAX_NEXT_MS } from './call-pace.ts';
import type { IsolateState } from './isolate-state.ts';
import type { LimitAlerts } from './limit-alerts.ts';
import type { LimiterStorage } from './limiter-storage.ts';
import { type OpenRequests, subjectsOf } from './open-requests.ts';

/** An isolate returns a slice within this time after its life, even if it has to repeat the call. */
const RETURN_MS = 5_000 + MAX_NEXT_MS;
/** An isolate without slices is forgotten after this time. */
const FORGET_MS = 3_600_000;

/**
 * The isolates of a tenant, and the slices that the object has granted them. Kept with the tenant's counters.
 */
export class IsolateSlices {
  readonly #requests: OpenRequests;
  readonly #counters: Counters;
  readonly #isolates: LimiterStorage['isolates'];
  /** Learns the limits of subjects. */
  readonly #alerts: Pick<LimitAlerts, 'know'>;
  /** Number of slices that are charged to a subject. */
  readonly #charged = new Map<string, number>();

  constructor(
    requests: OpenRequests,
    { isolates }: Pick<LimiterStorage, 'isolates'>,
    alerts: Pick<LimitAlerts, 'know'>,
  ) {
    this.#requests = requests;
    this.#counters = requests.counters;
    this.#isolates = isolates;
    this.#alerts = alerts;
    for (const slice of this.#all()) this.#count(slice, 1);
  }

  *#all(): Generator<Slice> {
    for (const [, { slices }] of this.#isolates.all()) yield* slices;
  }

  #count({ subjects }: Slice, change: 1 | -1): void {
    for (const id of subjects) {
      const count = (this.#charged.get(id) ?? 0) + change;
      if (count === 0) this.#charged.delete(id);
      else this.#charged.set(id, count);
    }
  }

  find(isolate: string): IsolateState | undefined {
    return this.#isolates.get(isolate);
  }

  /** Stores the state of an isolate. */
  save(isolate: string, state: IsolateState): void {
    this.#isolates.set(isolate, state);
  }

  /** Remembers the limits of these subjects. */
  know(subjects: readonly Subject[], tenantId: string): void {
    this.#alerts.know(subjects, tenantId);
  }

  /** Grants a slice for a key; null if the key is blocked, or too little is left. */
  grant(state: IsolateState, holder: SliceRequest, now: number): GrantedSlice | null {
    const { tenantId, keyId, ttlMs } = holder;
    if (this.#requests.isBlocked(keyId)) return null;
    const subjects = subjectsOf(holder);
    this.know(subjects, tenantId);
    const owner = { number: state.granted + 1, tenantId, keyId, ttlMs };
    const slices = (subject: string) => this.#charged.get(subject) ?? 0;
    const slice = grant(this.#counters, { subjects, owner, min: holder, most: holder.most, slices }, now);
    if (!slice) return null;
    this.#count(slice, 1);
    state.granted = slice.number;
    state.slices.push(slice);
    const { number, left, lifeMs } = slice;
    const status = rateLimitStatus(this.#counters, subjects, now);
    return { keyId, number, amounts: { ...left }, lifeMs, status };
  }

  /** Takes back what is left of a slice. */
  remove(state: IsolateState, slice: Slice): void {
    release(this.#counters, slice);
    this.#count(slice, -1);
    state.slices = state.slices.filter((kept) => kept !== slice);
  }

  /** Returns what all slices may give back. */
  holders(): Holder[] {
    return [...this.#all()].map(holderOf);
  }

  /** Returns whether a slice of a subject has something left that its isolate may still use. */
  holdsUnused(subject: string, resource: Resource): boolean {
    return [...this.#all()].some(
      ({ ended, subjects, left }) => !ended && subjects.includes(subject) && (left[resource] ?? 0) > 0,
    );
  }

  /** Counts the slices of lost isolates as spent, and takes back those that an isolate has never received. */
  endDue(now: number): void {
    if (now < this.#isolates.firstDue) return;
    for (const [isolate, state] of this.#isolates.all()) {
      const due = state.slices.filter(({ ended, endsAt }) => !ended && endsAt <= now);
      if (due.length === 0) continue;
      for (const slice of due) this.#end(state, slice, now);
      this.save(isolate, state);
    }
    this.#isolates.nextDue();
  }

  #end(state: IsolateState, slice: Slice, now: number): void {
    // An isolate that has called since would have returned it.
    if (state.heardAt >= slice.endsAt - SLICE_GRACE_MS + RETURN_MS) this.remove(state, slice);
    // While the object was away, no isolate could call.
    else if (wasAway(slice.endsAt, now)) slice.endsAt = now + SLICE_GRACE_MS;
    else {
      end(this.#counters, slice, now);
      state.lostSince ??= now;
    }
  }

  /** Ids of the isolates whose slices have ended. Upstreams know their last requests by these ids. */
  lost(now: number): string[] {
    const isLost = ({ slices }: IsolateState) => slices.some((slice) => slice.ended && slice.endsAt <= now);
    return this.#isolates.all().flatMap(([isolate, state]) => (isLost(state) ? [isolate] : []));
  }

  /** Forgets isolates that have held nothing for an hour. */
  forgetOld(now: number): void {
    for (const [isolate, { slices, heardAt }] of this.#isolates.all())
      if (slices.length === 0 && heardAt <= now - FORGET_MS) this.#isolates.delete(isolate);
  }
}

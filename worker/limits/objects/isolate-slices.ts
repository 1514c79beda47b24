import type { Resource } from '../quota/budget.ts';
import type { GrantedSlice, SliceRequest } from '../quota/protocol.ts';
import { rateLimitStatus } from '../quota/rate-limit-headers.ts';
import { end, grant, holderOf, release, SLICE_GRACE_MS, type Slice } from '../quota/slice.ts';
import type { Holder, QuotaState, Subject } from '../quota/state.ts';
import { wasAway } from './alarm-clock.ts';
import { MAX_NEXT_MS } from './call-pace.ts';
import type { LimitAlerts } from './limit-alerts.ts';
import type { IsolateState, LimiterStorage } from './limiter-storage.ts';
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
  readonly #quota: QuotaState;
  readonly #isolates: Map<string, IsolateState>;
  readonly #storage: Pick<LimiterStorage, 'saveIsolate'>;
  /** Learns the limits of subjects. */
  readonly #alerts: Pick<LimitAlerts, 'know'>;
  /** Number of slices that are charged to a subject. */
  readonly #charged = new Map<string, number>();
  /** Unix milliseconds before which no slice ends: saves a look at all of them per call. */
  #firstEnd = 0;

  constructor(
    requests: OpenRequests,
    storage: Pick<LimiterStorage, 'loadIsolates' | 'saveIsolate'>,
    alerts: Pick<LimitAlerts, 'know'>,
  ) {
    this.#requests = requests;
    this.#quota = requests.quota;
    this.#storage = storage;
    this.#alerts = alerts;
    this.#isolates = storage.loadIsolates();
    for (const slice of this.#all()) this.#count(slice, 1);
  }

  *#all(): Generator<Slice> {
    for (const { slices } of this.#isolates.values()) yield* slices;
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

  /** Stores the state of an isolate. @param isDue in the commit of this call, else in the next one */
  save(isolate: string, state: IsolateState, isDue: boolean): void {
    this.#isolates.set(isolate, state);
    this.#storage.saveIsolate(isolate, state, isDue);
  }

  /** Remembers the limits of these subjects. */
  know(subjects: readonly Subject[], tenantId: string): void {
    this.#alerts.know(subjects, tenantId, this.#quota);
  }

  /** Grants a slice for a key; null if the key is blocked, or too little is left. */
  grant(state: IsolateState, holder: SliceRequest, now: number): GrantedSlice | null {
    const { tenantId, keyId, ttlMs } = holder;
    if (this.#requests.isBlocked(keyId)) return null;
    const subjects = subjectsOf(holder);
    this.know(subjects, tenantId);
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

  /** Takes back what is left of a slice. */
  remove(state: IsolateState, slice: Slice): void {
    release(this.#quota, slice);
    this.#count(slice, -1);
    state.slices = state.slices.filter((kept) => kept !== slice);
    this.#requests.touch(slice.subjects);
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
    if (now < this.#firstEnd) return;
    for (const [isolate, state] of this.#isolates) {
      const due = state.slices.filter(({ ended, endsAt }) => !ended && endsAt <= now);
      if (due.length === 0) continue;
      for (const slice of due) this.#end(state, slice, now);
      this.#storage.saveIsolate(isolate, state, true);
    }
    this.#firstEnd = this.nextEnd() ?? Infinity;
  }

  #end(state: IsolateState, slice: Slice, now: number): void {
    // An isolate that has called since would have returned it.
    if (state.heardAt >= slice.endsAt - SLICE_GRACE_MS + RETURN_MS) this.remove(state, slice);
    // While the object was away, no isolate could call.
    else if (wasAway(slice.endsAt, now)) slice.endsAt = now + SLICE_GRACE_MS;
    else {
      end(this.#quota, slice, now);
      this.#requests.touch(slice.subjects);
      state.lostSince ??= now;
    }
  }

  /** Unix milliseconds before which no slice ends; maybe too early. */
  get firstEnd(): number | null {
    return this.#firstEnd === Infinity ? null : this.#firstEnd;
  }

  /** Unix milliseconds at which the next slice ends if its isolate does not call; null without slices. */
  nextEnd(): number | null {
    let next: number | null = null;
    for (const { endsAt } of this.#all()) next = Math.min(next ?? endsAt, endsAt);
    return next;
  }

  /** Ids of the isolates whose slices have ended. Upstreams know their last requests by these ids. */
  lost(now: number): string[] {
    const isLost = ({ slices }: IsolateState) => slices.some((slice) => slice.ended && slice.endsAt <= now);
    return [...this.#isolates].filter(([, state]) => isLost(state)).map(([isolate]) => isolate);
  }

  /** Forgets isolates that have held nothing for an hour. */
  forgetOld(now: number): void {
    for (const [isolate, { slices, heardAt }] of this.#isolates) {
      if (slices.length > 0 || heardAt > now - FORGET_MS) continue;
      this.#isolates.delete(isolate);
      this.#storage.saveIsolate(isolate, null, true);
    }
  }
}

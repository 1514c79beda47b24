import type {
  GrantedSlice,
  LimitHolder,
  RegionDecision,
  RegionSync,
  RegionSyncResult,
  Renewal,
  ReservationRequest,
  ReservationResult,
  SettlementRequest,
} from '../../env/limiter-protocol.ts';
import { rateLimitStatus } from '../quota/rate-limit-headers.ts';
import { draw, end, grant, refund, release, type Slice } from '../quota/slice.ts';
import type { QuotaReservation, QuotaState, Subject } from '../quota/state.ts';

/** What home knows of a region. Plain data, so that it can be stored as JSON. */
export interface RegionState {
  /** Sequence number of the last decision that home has applied. */
  cursor: number;
  /** Number of the last sync. */
  sync: number;
  /** Number of the last granted slice. */
  granted: number;
  slices: Slice[];
}

/** What the home limiter does for its slices: requests, their records, and storage. */
export interface HomeCallbacks {
  isOpen(requestId: string): boolean;
  /** Adds a request that a region has admitted. */
  open(request: ReservationRequest, reservation: QuotaReservation, at: number): void;
  settle(settlement: SettlementRequest): void;
  renew(requestId: string, renewal: Renewal): void;
  reserve(request: ReservationRequest, now: number): ReservationResult;
  subjectsOf(holder: LimitHolder): Subject[];
  isBlocked(keyId: string): boolean;
  /** Marks the counters of these subjects as changed. */
  touch(subjects: readonly string[]): void;
  saveRegion(region: string, state: RegionState): void;
}

/** The slices of all regions of one tenant, kept with its counters. Pure except for the callbacks. */
export class HomeSlices {
  readonly #quota: QuotaState;
  readonly #regions: Map<string, RegionState>;
  readonly #home: HomeCallbacks;

  constructor(quota: QuotaState, regions: Map<string, RegionState>, home: HomeCallbacks) {
    this.#quota = quota;
    this.#regions = regions;
    this.#home = home;
  }

  /** Applies a region's decisions, takes back what it no longer holds, and grants new slices. Null if outdated. */
  sync(sync: RegionSync, now: number): RegionSyncResult | null {
    const { region, number, decisions, renewals, heldSlices, requests, sliceRequests } = sync;
    this.endDue(now);
    const state = this.#regions.get(region) ?? { cursor: 0, sync: 0, granted: 0, slices: [] };
    if (number <= state.sync) return null;
    this.#regions.set(region, state);
    state.sync = number;
    for (const { sequence, decision } of decisions) {
      if (sequence <= state.cursor) continue;
      state.cursor = sequence;
      this.#apply(state, decision, now);
    }
    for (const { requestId, renewal } of renewals) this.#home.renew(requestId, renewal);
    for (const { subjects } of state.slices) this.#home.touch(subjects);
    const gone = state.slices.filter((slice) => !heldSlices.includes(slice.number));
    for (const slice of gone) release(this.#quota, slice);
    state.slices = state.slices.filter((slice) => !gone.includes(slice));
    const reservations = requests.map((request) => this.#home.reserve(request, now));
    const slices = sliceRequests.flatMap((holder) => this.#grant(region, state, holder, now) ?? []);
    this.#home.saveRegion(region, state);
    return { cursor: state.cursor, reservations, slices };
  }

  /** Counts the slices of silent regions as spent. */
  endDue(now: number): void {
    for (const [region, state] of this.#regions) {
      const due = state.slices.filter(({ ended, endsAt }) => !ended && endsAt <= now);
      if (due.length === 0) continue;
      for (const slice of due) {
        end(this.#quota, slice, now);
        this.#home.touch(slice.subjects);
      }
      this.#home.saveRegion(region, state);
    }
  }

  /** Unix milliseconds at which the next slice ends if its region stays silent; null without slices. */
  nextEnd(): number | null {
    const running = [...this.#regions.values()].flatMap(({ slices }) => slices.filter(({ ended }) => !ended));
    return running.length === 0 ? null : Math.min(...running.map(({ endsAt }) => endsAt));
  }

  /** Ids of the regions that hold slices. */
  holders(): string[] {
    return [...this.#regions].filter(([, { slices }]) => slices.length > 0).map(([region]) => region);
  }

  #apply(state: RegionState, decision: RegionDecision, now: number): void {
    const sliceOf = (number: number) => state.slices.find((slice) => slice.number === number);
    if (decision.kind === 'settled') {
      this.#home.settle(decision);
      const slice = decision.refund && sliceOf(decision.refund.slice);
      if (slice) refund(this.#quota, slice, decision.refund?.tokens ?? 0);
      return;
    }
    const { request } = decision;
    // A region that restarted between two attempts of a caller has admitted the request twice.
    if (this.#home.isOpen(request.requestId)) return;
    const { requestId: id, tokens, ttlMs } = request;
    // Home keeps a slice until it has applied all decisions of the region.
    const reservation = draw(this.#quota, sliceOf(decision.slice)!, { id, tokens, ttlMs }, now);
    this.#home.open(request, reservation, decision.at);
  }

  #grant(region: string, state: RegionState, holder: LimitHolder, now: number): GrantedSlice | null {
    const { keyId } = holder;
    if (this.#home.isBlocked(keyId)) return null;
    const subjects = this.#home.subjectsOf(holder);
    const slice = grant(this.#quota, { number: state.granted + 1, region, subjects }, now);
    if (!slice) return null;
    state.granted = slice.number;
    state.slices.push(slice);
    this.#home.touch(slice.subjects);
    const { number, left, lifeMs } = slice;
    const status = rateLimitStatus(this.#quota, subjects, now);
    return { keyId, number, amounts: { ...left }, lifeMs, status };
  }
}

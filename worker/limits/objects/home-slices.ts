import type { Ending, Progress, Reservation, ReservationRequest } from '../protocol.ts';
import { standingOf } from '../quota/rate-limit-headers.ts';
import { draw, end, grant, refund, release, type Slice } from '../quota/slice.ts';
import type { QuotaLease, QuotaState, Subject } from '../quota/state.ts';
import type { Exchange, ExchangeAnswer, GrantedSlice, JournalEntry, Wish } from './exchange.ts';

/** What home knows of a region. Plain data, so that it can be stored as it is. */
export interface RegionState {
  /** Entries of its journal that have been read. */
  cursor: number;
  /** Of its last exchange. */
  exchange: number;
  /** Slices it was ever granted. */
  granted: number;
  slices: Slice[];
}

/** The home object around the slices: requests, their records, and what must be written. */
export interface Home {
  isOpen(requestId: string): boolean;
  /** A request that a region admitted, with what it holds now. */
  open(request: ReservationRequest, lease: QuotaLease, at: number): void;
  settle(ending: Ending): void;
  renew(requestId: string, progress: Progress): void;
  reserve(request: ReservationRequest, now: number): Reservation;
  subjectsOf(wish: Wish): Subject[];
  isBlocked(keyId: string): boolean;
  /** Their counters have changed. */
  touch(subjects: readonly string[]): void;
  saveRegion(region: string, state: RegionState): void;
}

/** The slices of all regions of one tenant, kept where its counters are. Pure but for `home`. */
export class HomeSlices {
  readonly #quota: QuotaState;
  readonly #regions: Map<string, RegionState>;
  readonly #home: Home;

  constructor(quota: QuotaState, regions: Map<string, RegionState>, home: Home) {
    this.#quota = quota;
    this.#regions = regions;
    this.#home = home;
  }

  /** Reads what a region tells, takes back what it no longer holds, and gives what it asks for; null when outdated. */
  exchange(exchange: Exchange, now: number): ExchangeAnswer | null {
    const { region, number, entries, progress, holding, claims, wishes } = exchange;
    this.endDue(now);
    const state = this.#regions.get(region) ?? { cursor: 0, exchange: 0, granted: 0, slices: [] };
    if (number <= state.exchange) return null;
    this.#regions.set(region, state);
    state.exchange = number;
    for (const { sequence, entry } of entries) {
      if (sequence <= state.cursor) continue;
      state.cursor = sequence;
      this.#read(state, entry, now);
    }
    for (const { requestId, progress: told } of progress) this.#home.renew(requestId, told);
    for (const { subjects } of state.slices) this.#home.touch(subjects);
    const gone = state.slices.filter((slice) => !holding.includes(slice.number));
    for (const slice of gone) release(this.#quota, slice);
    state.slices = state.slices.filter((slice) => !gone.includes(slice));
    const reservations = claims.map((claim) => this.#home.reserve(claim, now));
    const granted = wishes.flatMap((wish) => this.#grant(region, state, wish, now) ?? []);
    this.#home.saveRegion(region, state);
    return { cursor: state.cursor, reservations, slices: granted };
  }

  /** Takes slices of silent regions for spent. */
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

  /** When the next slice ends unless its region is heard; null without slices. */
  nextEnd(): number | null {
    const running = [...this.#regions.values()].flatMap(({ slices }) => slices.filter(({ ended }) => !ended));
    return running.length === 0 ? null : Math.min(...running.map(({ endsAt }) => endsAt));
  }

  /** Regions that may be admitting right now. */
  holders(): string[] {
    return [...this.#regions].filter(([, { slices }]) => slices.length > 0).map(([region]) => region);
  }

  #read(state: RegionState, entry: JournalEntry, now: number): void {
    const paid = (number: number) => state.slices.find((slice) => slice.number === number);
    if (entry.kind === 'settled') {
      this.#home.settle(entry);
      const slice = entry.refund && paid(entry.refund.slice);
      if (slice) refund(this.#quota, slice, entry.refund?.tokens ?? 0);
      return;
    }
    const { request } = entry;
    // A region that lost its memory between a caller's two attempts has admitted it twice.
    if (this.#home.isOpen(request.requestId)) return;
    const { requestId: id, tokens, leaseMs } = request;
    // A slice stays until the region's journal has been read to its end.
    const lease = draw(this.#quota, paid(entry.slice)!, { id, tokens, leaseMs }, now);
    this.#home.open(request, lease, entry.at);
  }

  #grant(region: string, state: RegionState, wish: Wish, now: number): GrantedSlice | null {
    const { keyId } = wish;
    if (this.#home.isBlocked(keyId)) return null;
    const subjects = this.#home.subjectsOf(wish);
    const slice = grant(this.#quota, { number: state.granted + 1, region, subjects }, now);
    if (!slice) return null;
    state.granted = slice.number;
    state.slices.push(slice);
    this.#home.touch(slice.subjects);
    const { number, left, lifeMs } = slice;
    return { keyId, number, amounts: { ...left }, lifeMs, standing: standingOf(this.#quota, subjects, now) };
  }
}

import type { ListedAccount } from '@continuo/shared/usage.ts';
import { isEndUser } from '../end-user.ts';
import { eachOf } from '../quota/budget.ts';
import { draw, drawSpend } from '../quota/slice.ts';
import { type Counters, reservedBy } from '../quota/state.ts';
import { numberOf, priceOf, sliceOf } from '../usage/reservation-id.ts';
import { spendOf } from '../usage/usage-record.ts';
import type { IsolateSlices } from './isolate-slices.ts';
import type { IsolateState } from './isolate-state.ts';
import type { OpenRequests } from './open-requests.ts';

/** Upstreams that do not answer are asked again after this time, and so long in all. */
const ASK_AGAIN_MS = 10_000;
const ASK_FOR_MS = 600_000;

/**
 * Bills what a lost isolate has not reported: the upstreams know the requests that have reached them. It has
 * not called for 30 s after the life of a slice.
 */
export class LostIsolates {
  readonly #slices: IsolateSlices;
  readonly #requests: OpenRequests;
  readonly #counters: Counters;

  constructor(slices: IsolateSlices, requests: OpenRequests) {
    this.#slices = slices;
    this.#requests = requests;
    this.#counters = requests.counters;
  }

  /**
   * Adds the requests that an isolate has not reported, and takes back the rest of its slices. From then on,
   * the object ignores its decisions.
   * @param accounts null if the upstreams do not answer; then they are asked again for a while
   */
  settle(isolate: string, accounts: readonly ListedAccount[] | null, now: number): void {
    const state = this.#slices.find(isolate);
    if (!state?.slices.some(({ ended }) => ended)) return;
    if (accounts === null && now - (state.lostSince ?? now) < ASK_FOR_MS) {
      for (const slice of state.slices) slice.endsAt = Math.max(slice.endsAt, now + ASK_AGAIN_MS);
    } else {
      for (const account of accounts ?? []) this.#add(state, account, now);
      for (const slice of state.slices) this.#slices.remove(state, slice);
      Object.assign(state, { gone: true, heardAt: now });
    }
    this.#slices.save(isolate, state);
  }

  #add(state: IsolateState, listed: ListedAccount, now: number): void {
    const { account, model, usage, ageMs } = listed;
    const slice = state.slices.find(({ number }) => number === sliceOf(account));
    if (!slice || numberOf(account) <= state.named) {
      this.#extend(state, listed, now);
      return;
    }
    const { tenantId, keyId, ttlMs, left } = slice;
    const used = spendOf(priceOf(account), usage);
    const spend = eachOf((name) => Math.min(used[name], left[name] ?? Infinity));
    const reservation = draw(this.#counters, slice, { id: account, spend }, now);
    const request = { requestId: account, tenantId, keyId, model, ttlMs };
    this.#requests.addLost(request, reservation, now - ageMs, now);
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
      this.#requests.extend(account, drawSpend(this.#counters, slice, spend, now));
      missing = eachOf((name) => missing[name] - spend[name]);
    }
  }
}

import { type Cost, eachOf, RESOURCES } from './budget.ts';
import type { Amounts, Gauge, GrantedSlice, RateLimitStatus, Spend } from './protocol.ts';
import { headersOf } from './rate-limit-headers.ts';
import { resetIn } from './window.ts';

/** A slice as its isolate sees it. */
export interface HeldSlice {
  readonly number: number;
  readonly granted: Amounts;
  readonly left: Amounts;
  readonly lifeMs: number;
  /** Unix milliseconds by the isolate's own clock, counted from before the object granted the slice. */
  readonly expiresAt: number;
  readonly status: RateLimitStatus;
}

/** A first slice is for so many requests, and so many tokens: a larger request may follow a small one. */
const FIRST_REQUESTS = 128;
const FIRST_TOKENS = 8_192;
const MIN_AGE_MS = 1_000;

/** Adds to what is left; what has no limit stays so. */
function put(left: Amounts, cost: Cost, sign: 1 | -1): void {
  for (const name of RESOURCES) if (left[name] !== null) left[name] += sign * (cost[name] ?? 0);
}

/** The slices that an isolate holds of one tenant, one per key. Pure: the clock is an argument. */
export class HeldSlices {
  readonly #byKey = new Map<string, HeldSlice>();

  get isEmpty(): boolean {
    return this.#byKey.size === 0;
  }

  /** Returns a key's slice; null if there is none, or it has expired or begins after now. */
  of(keyId: string, now: number): HeldSlice | null {
    const slice = this.#byKey.get(keyId);
    const left = slice ? slice.expiresAt - now : 0;
    return slice && left > 0 && left <= slice.lifeMs ? slice : null;
  }

  /** Charges a cost to the key's slice, all of it. Returns the slice; null if it cannot pay. */
  take(keyId: string, cost: Cost, now: number): HeldSlice | null {
    const slice = this.of(keyId, now);
    if (!slice || RESOURCES.some((name) => (slice.left[name] ?? Infinity) < (cost[name] ?? 0))) return null;
    put(slice.left, cost, -1);
    return slice;
  }

  /** Gives a part of a cost back to the slice with this number. False if it is no longer held. */
  refund(keyId: string, number: number, cost: Cost): boolean {
    const slice = this.#byKey.get(keyId);
    if (slice?.number !== number) return false;
    put(slice.left, cost, 1);
    return true;
  }

  /**
   * Replaces the key's slice. Returns the number of the old one; null if there was none.
   * @param sentAt when the call was made: a slice lives from then on, never longer than the object assumes
   */
  put({ keyId, number, amounts, lifeMs, status }: GrantedSlice, sentAt: number): number | null {
    const old = this.#byKey.get(keyId);
    const expiresAt = sentAt + lifeMs;
    this.#byKey.set(keyId, { number, granted: amounts, left: { ...amounts }, lifeMs, expiresAt, status });
    return old?.number ?? null;
  }

  /** Removes the slices of the keys that are selected. Returns their numbers. */
  drop(isSelected: (keyId: string) => boolean): number[] {
    return [...this.#byKey].flatMap(([keyId, slice]) => {
      if (!isSelected(keyId)) return [];
      this.#byKey.delete(keyId);
      return [slice.number];
    });
  }

  /** Returns whether a key needs a new slice at once: less than half of an amount is left. */
  isLow(keyId: string, now: number): boolean {
    const slice = this.of(keyId, now);
    if (!slice) return true;
    const { left, granted } = slice;
    return RESOURCES.some((name) => (left[name] ?? Infinity) * 2 < (granted[name] ?? 0));
  }

  /** Returns whether less than half of the lifetime of a key's slice is left: it needs a new one soon. */
  isOld(keyId: string, now: number): boolean {
    const slice = this.of(keyId, now);
    return slice === null || (slice.expiresAt - now) * 2 < slice.lifeMs;
  }

  /**
   * Returns what the next slice of a key may need: what it would use in two lifetimes at the pace so far, and
   * enough for the first requests. What an isolate holds unused is missing elsewhere.
   */
  need(keyId: string, request: Spend, now: number): Record<keyof Amounts, number> {
    const slice = this.of(keyId, now);
    const many = Math.max(FIRST_REQUESTS, Math.ceil(FIRST_TOKENS / Math.max(1, request.tokens)));
    const spend = eachOf((name) => many * request[name]);
    const firsts = { requests: FIRST_REQUESTS, slots: FIRST_REQUESTS, ...spend };
    const need = (name: keyof Amounts) => {
      const first = firsts[name];
      if (!slice) return first;
      const { granted, left, lifeMs, expiresAt } = slice;
      const used = (granted[name] ?? 0) - (left[name] ?? 0);
      const age = Math.max(MIN_AGE_MS, now - expiresAt + lifeMs);
      return Math.max(first, Math.ceil((2 * used * lifeMs) / age));
    };
    return { requests: need('requests'), tokens: need('tokens'), money: need('money'), slots: need('slots') };
  }

  /** Returns `x-ratelimit-*` headers from the key's slice; null without one. */
  headersOf(keyId: string, now: number): Record<string, string> | null {
    const slice = this.of(keyId, now);
    if (!slice) return null;
    const { status, left } = slice;
    const resetMs = resetIn([[Math.floor(now / 1000), 1]], now);
    const gauge = (counted: Gauge | null, here: number | null): Gauge | null =>
      counted && { limit: counted.limit, remaining: counted.remaining + (here ?? 0), resetMs };
    return headersOf({
      requests: gauge(status.requests, left.requests),
      tokens: gauge(status.tokens, left.tokens),
    });
  }
}

import type { Amounts, RateLimitStatus } from '../../env/limiter-protocol.ts';

/** A slice as its region sees it. */
export interface HeldSlice {
  readonly number: number;
  readonly granted: Amounts;
  readonly left: Amounts;
  readonly lifeMs: number;
  /** Unix milliseconds by the region's own clock, counted from before home granted the slice. */
  readonly expiresAt: number;
  readonly status: RateLimitStatus;
}

const fits = (left: number | null, amount: number): boolean => left === null || left >= amount;

const isHalfLeft = (left: number | null, granted: number | null): boolean =>
  left === null || granted === null || left * 2 >= granted;

/** The slices that a region holds, one per key. Pure: the clock is an argument. */
export class HeldSlices {
  readonly #byKey = new Map<string, HeldSlice>();

  /** Returns a key's slice; null if there is none or it has expired. */
  of(keyId: string, now: number): HeldSlice | null {
    const slice = this.#byKey.get(keyId);
    if (slice && slice.expiresAt > now) return slice;
    this.#byKey.delete(keyId);
    return null;
  }

  /** Charges a request to the key's slice; null if the slice cannot pay for it. */
  take(keyId: string, tokens: number, now: number): HeldSlice | null {
    const slice = this.of(keyId, now);
    if (!slice) return null;
    const { left } = slice;
    if (!fits(left.requests, 1) || !fits(left.tokens, tokens) || !fits(left.slots, 1)) return null;
    if (left.requests !== null) left.requests -= 1;
    if (left.tokens !== null) left.tokens -= tokens;
    if (left.slots !== null) left.slots -= 1;
    return slice;
  }

  /** Returns the slot and the unused tokens of a request to its slice. False if that slice is no longer held. */
  refund(keyId: string, number: number, tokens: number, now: number): boolean {
    const slice = this.of(keyId, now);
    if (slice?.number !== number) return false;
    if (slice.left.tokens !== null) slice.left.tokens += tokens;
    if (slice.left.slots !== null) slice.left.slots += 1;
    return true;
  }

  /** Replaces the key's slice. Home gets the old one back at the next sync. */
  put(keyId: string, slice: HeldSlice): void {
    this.#byKey.set(keyId, slice);
  }

  drop(keyId: string): void {
    this.#byKey.delete(keyId);
  }

  clear(): void {
    this.#byKey.clear();
  }

  /** Returns the numbers of all slices that have not expired. */
  numbers(now: number): number[] {
    return [...this.#byKey.keys()].flatMap((keyId) => this.of(keyId, now)?.number ?? []);
  }

  /** Returns whether a key needs a new slice: less than half of an amount or of its lifetime is left. */
  isLow(keyId: string, now: number): boolean {
    const slice = this.of(keyId, now);
    if (!slice) return true;
    const { left, granted, expiresAt, lifeMs } = slice;
    const full =
      isHalfLeft(left.requests, granted.requests) &&
      isHalfLeft(left.tokens, granted.tokens) &&
      isHalfLeft(left.slots, granted.slots) &&
      (expiresAt - now) * 2 >= lifeMs;
    return !full;
  }

  /** Unix milliseconds at which the next slice expires; null without slices. */
  nextExpiry(): number | null {
    const all = [...this.#byKey.values()].map(({ expiresAt }) => expiresAt);
    return all.length === 0 ? null : Math.min(...all);
  }
}

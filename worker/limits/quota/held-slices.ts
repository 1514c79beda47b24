import type { Standing } from './rate-limit-headers.ts';
import type { Amounts } from './slice.ts';

/** A slice as its region sees it. */
export interface Holding {
  readonly number: number;
  readonly granted: Amounts;
  readonly left: Amounts;
  readonly lifeMs: number;
  /** Unix milliseconds of the region's own clock, counted from before home granted it: home's clock is never asked. */
  readonly expiresAt: number;
  readonly standing: Standing;
}

const fits = (left: number | null, amount: number): boolean => left === null || left >= amount;

const half = (left: number | null, granted: number | null): boolean =>
  left === null || granted === null || left * 2 >= granted;

/** The slices that a region holds, one per key. Pure: the clock is an argument. */
export class Holdings {
  readonly #byKey = new Map<string, Holding>();

  /** A key's slice; null when there is none or its time is over. */
  of(keyId: string, now: number): Holding | null {
    const holding = this.#byKey.get(keyId);
    if (holding && holding.expiresAt > now) return holding;
    this.#byKey.delete(keyId);
    return null;
  }

  /** Pays for a request; null when the key's slice cannot. */
  take(keyId: string, tokens: number, now: number): Holding | null {
    const holding = this.of(keyId, now);
    if (!holding) return null;
    const { left } = holding;
    if (!fits(left.requests, 1) || !fits(left.tokens, tokens) || !fits(left.slots, 1)) return null;
    if (left.requests !== null) left.requests -= 1;
    if (left.tokens !== null) left.tokens -= tokens;
    if (left.slots !== null) left.slots -= 1;
    return holding;
  }

  /** Slot and unused tokens of a request return to the slice that paid; false when it is no longer held. */
  refund(keyId: string, number: number, tokens: number, now: number): boolean {
    const holding = this.of(keyId, now);
    if (holding?.number !== number) return false;
    if (holding.left.tokens !== null) holding.left.tokens += tokens;
    if (holding.left.slots !== null) holding.left.slots += 1;
    return true;
  }

  /** A new slice takes the place of the key's old one, which is home's again with the next exchange. */
  put(keyId: string, holding: Holding): void {
    this.#byKey.set(keyId, holding);
  }

  drop(keyId: string): void {
    this.#byKey.delete(keyId);
  }

  clear(): void {
    this.#byKey.clear();
  }

  /** Numbers of all that may still be spent. */
  numbers(now: number): number[] {
    return [...this.#byKey.keys()].flatMap((keyId) => this.of(keyId, now)?.number ?? []);
  }

  /** Whether a key should have a new slice: less than half is left of its amounts or of its time. */
  isLow(keyId: string, now: number): boolean {
    const holding = this.of(keyId, now);
    if (!holding) return true;
    const { left, granted, expiresAt, lifeMs } = holding;
    const full =
      half(left.requests, granted.requests) &&
      half(left.tokens, granted.tokens) &&
      half(left.slots, granted.slots) &&
      (expiresAt - now) * 2 >= lifeMs;
    return !full;
  }

  /** When the next slice's time is over; null without slices. */
  nextExpiry(): number | null {
    const all = [...this.#byKey.values()].map(({ expiresAt }) => expiresAt);
    return all.length === 0 ? null : Math.min(...all);
  }
}

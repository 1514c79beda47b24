import type { Amounts, RateLimitStatus, Spend } from '../../env/limiter-protocol.ts';
import { type Cost, eachOf, RESOURCES } from './budget.ts';

/** A slice as its isolate sees it. */
export interface HeldSlice {
  readonly number: number;
  readonly granted: Amounts;
  readonly left: Amounts;
  readonly lifeMs: number;
  /** Unix milliseconds by the isolate's own clock, counted from before home granted the slice. */
  readonly expiresAt: number;
  readonly status: RateLimitStatus;
}

/** Adds to what is left; what has no limit stays so. */
function put(left: Amounts, cost: Cost, sign: 1 | -1): void {
  for (const name of RESOURCES) if (left[name] !== null) left[name] += sign * (cost[name] ?? 0);
}

/** The slices that an isolate holds of one tenant, one per key. Pure: the clock is an argument. */
export class HeldSlices {
  readonly #byKey = new Map<string, HeldSlice>();

  /** Returns a key's slice; null if there is none, or it has expired or begins after now. */
  of(keyId: string, now: number): HeldSlice | null {
    const slice = this.#byKey.get(keyId);
    const left = slice ? slice.expiresAt - now : 0;
    return slice && left > 0 && left <= slice.lifeMs ? slice : null;
  }

  /** Charges a request to the key's slice; null if the slice cannot pay for it. */
  take(keyId: string, { tokens, money }: Spend, now: number): HeldSlice | null {
    const slice = this.of(keyId, now);
    if (!slice) return null;
    const { left } = slice;
    const cost = { requests: 1, tokens, money, slots: 1 };
    if (RESOURCES.some((name) => (left[name] ?? Infinity) < cost[name])) return null;
    put(left, cost, -1);
    return slice;
  }

  /**
   * Charges more of a running request: all of it, or as much as is left. Returns the slice and what was
   * charged; null if that is nothing.
   */
  takeMore(
    keyId: string,
    wanted: Spend,
    whole: boolean,
    now: number,
  ): { readonly slice: number; readonly spend: Spend } | null {
    const slice = this.of(keyId, now);
    if (!slice) return null;
    const spend = eachOf((name) => Math.min(wanted[name], slice.left[name] ?? wanted[name]));
    if (spend.tokens <= 0 && spend.money <= 0) return null;
    if (whole && (spend.tokens < wanted.tokens || spend.money < wanted.money)) return null;
    put(slice.left, spend, -1);
    return { slice: slice.number, spend };
  }

  /** Returns the slot and what a request has not spent to its slice. False if it is no longer held. */
  refund(keyId: string, number: number, unused: Spend): boolean {
    const slice = this.#byKey.get(keyId);
    if (slice?.number !== number) return false;
    put(slice.left, { ...unused, slots: 1 }, 1);
    return true;
  }

  /** Replaces the key's slice. Returns the number of the old one; null if there was none. */
  put(keyId: string, slice: HeldSlice): number | null {
    const old = this.#byKey.get(keyId);
    this.#byKey.set(keyId, slice);
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

  get isEmpty(): boolean {
    return this.#byKey.size === 0;
  }

  /** Returns whether a key needs a new slice: less than half of an amount or of its lifetime is left. */
  isLow(keyId: string, now: number): boolean {
    const slice = this.of(keyId, now);
    if (!slice) return true;
    const { left, granted, expiresAt, lifeMs } = slice;
    const isLowOn = (name: keyof Amounts) => (left[name] ?? Infinity) * 2 < (granted[name] ?? 0);
    return RESOURCES.some(isLowOn) || (expiresAt - now) * 2 < lifeMs;
  }
}

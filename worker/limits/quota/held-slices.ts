import type { Amounts, RateLimitStatus } from '../../env/limiter-protocol.ts';
import { type Cost, RESOURCES } from './budget.ts';

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

  /** Returns a key's slice; null if there is none or it has expired. */
  of(keyId: string, now: number): HeldSlice | null {
    const slice = this.#byKey.get(keyId);
    return slice && slice.expiresAt > now ? slice : null;
  }

  /** Charges a request to the key's slice; null if the slice cannot pay for it. */
  take(keyId: string, tokens: number, now: number): HeldSlice | null {
    const slice = this.of(keyId, now);
    if (!slice) return null;
    const { left } = slice;
    const cost = { requests: 1, tokens, slots: 1 };
    if (RESOURCES.some((name) => (left[name] ?? Infinity) < cost[name])) return null;
    put(left, cost, -1);
    return slice;
  }

  /**
   * Charges more tokens of a running request: all of them, or as many as are left. Returns the slice and the charged tokens;
   * null if there are none.
   */
  takeTokens(
    keyId: string,
    { tokens, whole }: { readonly tokens: number; readonly whole: boolean },
    now: number,
  ): { readonly slice: number; readonly tokens: number } | null {
    const slice = this.of(keyId, now);
    const taken = Math.min(tokens, slice?.left.tokens ?? tokens);
    if (!slice || taken <= 0 || (whole && taken < tokens)) return null;
    put(slice.left, { tokens: taken }, -1);
    return { slice: slice.number, tokens: taken };
  }

  /** Returns the slot and the unused tokens of a request to its slice. False if that slice is no longer held. */
  refund(keyId: string, number: number, tokens: number): boolean {
    const slice = this.#byKey.get(keyId);
    if (slice?.number !== number) return false;
    put(slice.left, { tokens, slots: 1 }, 1);
    return true;
  }

  /** Replaces the key's slice. Returns the number of the old one; null if there was none. */
  put(keyId: string, slice: HeldSlice): number | null {
    const old = this.#byKey.get(keyId);
    this.#byKey.set(keyId, slice);
    return old?.number ?? null;
  }

  /** Removes the slices of the keys that are selected. Returns their numbers. */
  drop(isSelected: (keyId: string, slice: HeldSlice) => boolean): number[] {
    return [...this.#byKey].flatMap(([keyId, slice]) => {
      if (!isSelected(keyId, slice)) return [];
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

import { type Amounts, type Cost, eachOf, RESOURCES, type Spend } from './budget.ts';
import { CALL_MS } from './outbox.ts';
import type { Claimant, Gauge, GrantedSlice, SliceRequest } from './protocol.ts';
import { headersOf } from './rate-limit-headers.ts';
import { resetIn } from './window.ts';

/** A slice as its isolate sees it. */
interface HeldSlice extends GrantedSlice {
  readonly left: Amounts;
  /** Unix milliseconds by the isolate's own clock, counted from before the object granted the slice. */
  readonly expiresAt: number;
}

/** A first slice is for so many requests, and so many tokens: a larger request may follow a small one. */
const FIRST_REQUESTS = 128;
const FIRST_TOKENS = 8_192;
const MIN_AGE_MS = 1_000;
/** A key without requests for this long returns its slice. A key with requests further apart gets none. */
const IDLE_MS = 2_000;
/** If the object lets many isolates take turns, a key has few requests in each: so many turns longer. */
const IDLE_TURNS = 5;
/** If the object has too little left for a slice, the isolate asks again after this time. */
const DENIED_MS = 500;

interface Key {
  slice: HeldSlice | null;
  usedAt: number;
  /** Its latest request, if it came soon after the one before, and no slice has been requested since. */
  wanted: Omit<SliceRequest, 'most'> | null;
  /** A slice has been requested, and the object may answer until then. */
  askedUntil: number;
  /** The object has too little left for a slice. */
  deniedUntil: number;
}

const newKey = (): Key => ({
  slice: null,
  usedAt: Number.NEGATIVE_INFINITY,
  wanted: null,
  askedUntil: 0,
  deniedUntil: 0,
});

/** Adds to what is left; what has no limit stays so. */
function put(left: Amounts, cost: Cost, sign: 1 | -1): void {
  for (const name of RESOURCES) if (left[name] !== null) left[name] += sign * (cost[name] ?? 0);
}

/**
 * The keys of one tenant that an isolate has requests of, and the slices that it holds and wants for them.
 * Pure: the clock is an argument.
 */
export class KeySlices {
  readonly #keys = new Map<string, Key>();
  #idleMs = IDLE_MS;

  /** The object wants calls at least so far apart. */
  set nextInMs(ms: number) {
    this.#idleMs = IDLE_MS + IDLE_TURNS * ms;
  }

  get isEmpty(): boolean {
    return [...this.#keys.values()].every(({ slice }) => slice === null);
  }

  #key(keyId: string): Key {
    const key = this.#keys.get(keyId) ?? newKey();
    this.#keys.set(keyId, key);
    return key;
  }

  /** Returns a key's slice; null if there is none, or it has expired or begins after now. */
  of(keyId: string, now: number): HeldSlice | null {
    const slice = this.#keys.get(keyId)?.slice ?? null;
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
    const { slice } = this.#keys.get(keyId) ?? { slice: null };
    if (slice?.number !== number) return false;
    put(slice.left, cost, 1);
    return true;
  }

  /**
   * Replaces the key's slice. Returns the number of the old one; null if there was none.
   * @param sentAt when the call was made: a slice lives from then on, never longer than the object assumes
   */
  put(granted: GrantedSlice, sentAt: number): number | null {
    const key = this.#key(granted.keyId);
    const old = key.slice?.number ?? null;
    key.slice = { ...granted, left: { ...granted.amounts }, expiresAt: sentAt + granted.lifeMs };
    return old;
  }

  /** Removes the slices of the keys that are selected. Returns their numbers. */
  drop(isSelected: (keyId: string) => boolean): number[] {
    return [...this.#keys].flatMap(([keyId, key]) => {
      if (key.slice === null || !isSelected(keyId)) return [];
      const { number } = key.slice;
      key.slice = null;
      return [number];
    });
  }

  /** Forgets idle keys. Returns the numbers of their slices, and of those that are out of date. */
  dropOld(now: number): number[] {
    const isIdle = ({ usedAt, askedUntil }: Key) => now - usedAt >= this.#idleMs && askedUntil <= now;
    const isOld = (keyId: string) => this.of(keyId, now) === null || isIdle(this.#key(keyId));
    const old = this.drop(isOld);
    for (const [keyId, key] of this.#keys) if (isIdle(key)) this.#keys.delete(keyId);
    return old;
  }

  /** A key has a request, which a slice would have to pay for. */
  note({ model: _, price: __, ...request }: Claimant, now: number): void {
    const key = this.#key(request.keyId);
    key.wanted = now - key.usedAt < this.#idleMs ? request : null;
    key.usedAt = now;
  }

  /** Returns whether a call under way asks for a slice of this key, or of any key if null. */
  isAsking(keyId: string | null, now: number): boolean {
    return [...this.#keys].some(([id, { askedUntil }]) => (keyId ?? id) === id && askedUntil > now);
  }

  /** Returns whether a key needs a new slice at once: less than half of an amount is left. */
  isUrgent(keyId: string, now: number): boolean {
    const key = this.#keys.get(keyId);
    return key !== undefined && this.#mayAsk(key, now) && this.#isLow(keyId, now);
  }

  #mayAsk({ wanted, askedUntil, deniedUntil }: Key, now: number): boolean {
    return wanted !== null && Math.max(askedUntil, deniedUntil) <= now;
  }

  #isLow(keyId: string, now: number): boolean {
    const slice = this.of(keyId, now);
    const isLow = (name: keyof Amounts) => (slice!.left[name] ?? Infinity) * 2 < (slice!.amounts[name] ?? 0);
    return slice === null || RESOURCES.some(isLow);
  }

  /** Returns the requests for slices that a call carries: less than half of a slice or its life is left. */
  next(now: number): SliceRequest[] {
    return [...this.#keys].flatMap(([keyId, key]) => {
      const { wanted, slice } = key;
      if (wanted === null || !this.#mayAsk(key, now)) return [];
      if (!this.#isLow(keyId, now) && (slice!.expiresAt - now) * 2 >= slice!.lifeMs) return [];
      key.askedUntil = now + CALL_MS;
      key.wanted = null;
      return [{ ...wanted, most: this.need(keyId, wanted, now) }];
    });
  }

  /** The object has answered: with a slice, with none if it was denied at this time, or not at all. */
  replied(keyId: string, deniedAt: number | null = null): void {
    const key = this.#keys.get(keyId);
    if (!key) return;
    key.askedUntil = 0;
    key.deniedUntil = deniedAt === null ? 0 : deniedAt + DENIED_MS;
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
      const { amounts, left, lifeMs, expiresAt } = slice;
      const used = (amounts[name] ?? 0) - (left[name] ?? 0);
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

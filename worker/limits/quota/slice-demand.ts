import type { HeldSlices } from './held-slices.ts';
import { CALL_MS } from './outbox.ts';
import type { Claimant, SliceRequest } from './protocol.ts';

/** A key without requests for this long returns its slice. A key with requests further apart gets none. */
const IDLE_MS = 2_000;
/** If the object lets many isolates take turns, a key has few requests in each: so many turns longer. */
const IDLE_TURNS = 5;
/** If the object has too little left for a slice, the isolate asks again after this time. */
const DENIED_MS = 500;

interface KeyUse {
  /** Of its latest request. */
  request: Omit<SliceRequest, 'most'>;
  usedAt: number;
  /** It has been used soon after its previous request, and no slice has been requested since. */
  wantsSlice: boolean;
  /** A slice has been requested, and the object may answer until then. */
  askedUntil: number;
  /** The object has too little left for a slice. */
  deniedUntil: number;
}

/** The keys that an isolate has requests of, and which of them want a slice. */
export class SliceDemand {
  readonly #keys = new Map<string, KeyUse>();
  #idleMs = IDLE_MS;

  /** The object wants calls at least so far apart. */
  set nextInMs(ms: number) {
    this.#idleMs = IDLE_MS + IDLE_TURNS * ms;
  }

  /** A key has a request, which a slice would have to pay for. */
  note({ model: _, price: __, ...request }: Claimant, now: number): void {
    const entry = this.#keys.get(request.keyId);
    if (entry) {
      entry.wantsSlice = now - entry.usedAt < this.#idleMs;
      entry.usedAt = now;
      entry.request = request;
    } else {
      const never = { wantsSlice: false, askedUntil: 0, deniedUntil: 0 };
      this.#keys.set(request.keyId, { request, usedAt: now, ...never });
    }
  }

  has(keyId: string): boolean {
    return this.#keys.has(keyId);
  }

  dropIdle(now: number): void {
    for (const [keyId, { usedAt, askedUntil }] of this.#keys)
      if (now - usedAt >= this.#idleMs && askedUntil <= now) this.#keys.delete(keyId);
  }

  /** Returns whether to ask for a slice of this key, if it has none or a low one. */
  isWanted(keyId: string, now: number): boolean {
    const { wantsSlice = false, askedUntil = 0, deniedUntil = 0 } = this.#keys.get(keyId) ?? {};
    return wantsSlice && Math.max(askedUntil, deniedUntil) <= now;
  }

  /** Returns whether a call under way asks for a slice of this key, or of any key if null. */
  isAsking(keyId: string | null, now: number): boolean {
    const asked = (key: KeyUse | undefined) => key !== undefined && key.askedUntil > now;
    return keyId === null ? [...this.#keys.values()].some(asked) : asked(this.#keys.get(keyId));
  }

  /** Returns the requests for slices that a call carries. */
  next(slices: HeldSlices, now: number): SliceRequest[] {
    return [...this.#keys].flatMap(([keyId, key]) => {
      const isNeeded = slices.isLow(keyId, now) || slices.isOld(keyId, now);
      if (!isNeeded || !this.isWanted(keyId, now)) return [];
      key.askedUntil = now + CALL_MS;
      key.wantsSlice = false;
      return [{ ...key.request, most: slices.need(keyId, key.request, now) }];
    });
  }

  /** The object has answered: with a slice, with none if it was denied at this time, or not at all. */
  answered(keyId: string, deniedAt: number | null = null): void {
    const key = this.#keys.get(keyId);
    if (!key) return;
    key.askedUntil = 0;
    key.deniedUntil = deniedAt === null ? 0 : deniedAt + DENIED_MS;
  }
}

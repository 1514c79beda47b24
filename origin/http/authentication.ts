import { ApiError } from '../../shared/errors.ts';
import { type SignedParts, type SigningKey, verify } from '../../shared/signing.ts';

/** A signature's timestamp may be this far from our clock, either way. */
export const SIGNATURE_WINDOW_MS = 60_000;

/** Nonces remembered at the same time; more signed requests than this per window are refused. */
const MOST_NONCES = 500_000;

/** Refuses a nonce that was seen while a signature with it could still be valid. */
export class ReplayGuard {
  /** Nonce → time after which its timestamp is stale whatever it was; in order of arrival, so in order of expiry. */
  readonly #expiry = new Map<string, number>();
  readonly #capacity: number;

  constructor(capacity = MOST_NONCES) {
    this.#capacity = capacity;
  }

  /** True the first time; false for a replay, and for everything while the memory is full. */
  accept(nonce: string, now: number): boolean {
    for (const [old, expiry] of this.#expiry) {
      if (expiry > now) break;
      this.#expiry.delete(old);
    }
    if (this.#expiry.has(nonce) || this.#expiry.size >= this.#capacity) return false;
    this.#expiry.set(nonce, now + 2 * SIGNATURE_WINDOW_MS);
    return true;
  }
}

/** Knows the Worker by its signature. */
export class Authenticator {
  readonly #key: SigningKey;
  readonly #now: () => number;
  readonly #seen: ReplayGuard;

  constructor(key: SigningKey, now: () => number, seen: ReplayGuard = new ReplayGuard()) {
    this.#key = key;
    this.#now = now;
    this.#seen = seen;
  }

  /**
   * The hash that the body must have, which has not been read yet.
   * @throws ApiError 401; the message does not say which check failed
   */
  async check(signature: string | undefined, parts: SignedParts): Promise<string> {
    const claims = await verify(this.#key, signature, parts);
    const now = this.#now();
    const fresh = claims !== null && Math.abs(now - claims.timestamp) <= SIGNATURE_WINDOW_MS;
    if (!fresh || !this.#seen.accept(claims.nonce, now)) throw notSigned();
    return claims.bodyHash;
  }
}

export const notSigned = (): ApiError =>
  new ApiError('invalid_api_key', 'The request is not signed, or its signature is not valid.');

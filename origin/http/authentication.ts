import { ApiError } from '../../shared/errors.ts';
import { type SignedParts, type SigningKey, verify } from '../../shared/signing.ts';

/** Maximum difference between a signature's timestamp and the local clock, in milliseconds. */
export const SIGNATURE_WINDOW_MS = 60_000;

/** Maximum number of nonces in memory; further signed requests within the window are rejected. */
const MAX_NONCES = 500_000;

/** Rejects a nonce while an earlier signature with it may still be valid. */
export class ReplayGuard {
  /** Nonce → time after which any signature with it is expired; in order of arrival, so also of expiry. */
  readonly #expiry = new Map<string, number>();
  readonly #capacity: number;

  constructor(capacity = MAX_NONCES) {
    this.#capacity = capacity;
  }

  /** Returns true the first time; false for a replay, and for all nonces while the memory is full. */
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

/** Authenticates the Worker by its signature. */
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
   * Returns the hash that the body must have. The body has not been read yet.
   * @throws ApiError 401 whose message does not say which check failed
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

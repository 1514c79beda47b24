import { createHmac, timingSafeEqual } from 'node:crypto';
import { ApiError } from '@continuo/shared/errors.ts';
import {
  type MacCheck,
  type SignatureClaims,
  type SignedParts,
  secretId,
  verify,
} from '@continuo/shared/signing.ts';
import type { Logger } from '../process/log.ts';

/** Maximum difference between a signature's timestamp and the local clock, in milliseconds. */
export const SIGNATURE_WINDOW_MS = 60_000;

/** Maximum number of nonces in memory; further signed requests within the window are rejected. */
const MAX_NONCES = 500_000;

/**
 * Rejects a nonce while an earlier signature with it may still be valid. The returned function returns true
 * the first time; false for a replay, and for all nonces while the memory is full.
 */
export function replayGuard(capacity = MAX_NONCES): (nonce: string, now: number) => boolean {
  /** Nonce → time after which any signature with it is expired; in order of arrival, so also of expiry. */
  const expiryOf = new Map<string, number>();
  return (nonce, now) => {
    for (const [old, expiry] of expiryOf) {
      if (expiry > now) break;
      expiryOf.delete(old);
    }
    if (expiryOf.has(nonce) || expiryOf.size >= capacity) return false;
    expiryOf.set(nonce, now + 2 * SIGNATURE_WINDOW_MS);
    return true;
  };
}

/** Returns the checks of the secrets' signatures, by the ids of the secrets. */
export async function importSecrets(secrets: readonly string[]): Promise<ReadonlyMap<string, MacCheck>> {
  const entries = secrets.map(async (secret) => [await secretId(secret), macCheck(secret)] as const);
  return new Map(await Promise.all(entries));
}

/** Not Web Crypto, which takes a thread of the pool: under load that takes milliseconds. */
const macCheck =
  (secret: string): MacCheck =>
  (mac, message) =>
    timingSafeEqual(mac, createHmac('sha256', secret).update(message).digest());

/**
 * Authenticates the Worker by its signature. Returns the hash that the body must have. The body has not been
 * read yet.
 * @param id id of the secret; absent = any of them
 * @throws ApiError 401 whose message does not say which check failed
 */
export type Authenticate = (
  signature: string | undefined,
  id: string | readonly string[] | undefined,
  parts: SignedParts,
) => Promise<string>;

/** @param keys checks by the ids of their secrets */
export function authenticator(
  keys: ReadonlyMap<string, MacCheck>,
  now: () => number,
  log: Pick<Logger, 'warn'>,
): Authenticate {
  const isNew = replayGuard();
  const requireFresh = ({ timestamp, nonce }: SignatureClaims, secret: string): void => {
    const time = now();
    const skewMs = timestamp - time;
    if (Math.abs(skewMs) > SIGNATURE_WINDOW_MS) {
      log.warn({ secret, skewMs }, 'clock skew');
      throw notSigned();
    }
    if (!isNew(nonce, time)) throw notSigned();
  };
  return async (signature, id, parts) => {
    const named = [...keys].filter(([keyId]) => id === undefined || id === keyId);
    if (named.length === 0) log.warn({ secret: String(id).slice(0, 8) }, 'unknown secret');
    for (const [secret, key] of named) {
      const claims = await verify(key, signature, parts);
      if (claims === null) continue;
      requireFresh(claims, secret);
      return claims.bodyHash;
    }
    throw notSigned();
  };
}

export const notSigned = (): ApiError =>
  new ApiError('invalid_api_key', 'The request is not signed, or its signature is not valid.');

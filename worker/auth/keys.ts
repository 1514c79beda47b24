import type { ApiKey } from '../../shared/tenant.ts';

const encoder = new TextEncoder();

/** Compares without telling by its duration where two hashes differ. */
export function sameHash(left: string, right: string): boolean {
  const [first, second] = [encoder.encode(left), encoder.encode(right)];
  return first.byteLength === second.byteLength && crypto.subtle.timingSafeEqual(first, second);
}

/** The hash an unknown key is compared with, so that it takes as long as a known one. No key is known to have it. */
export const NO_HASH = '0'.repeat(64);

/** Neither revoked nor expired. */
export const isActive = (key: ApiKey, now: number): boolean =>
  (key.revokedAt === null || key.revokedAt > now) && (key.expiresAt === null || key.expiresAt > now);

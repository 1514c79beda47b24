import { sha256Hex } from '@continuo/shared/signing.ts';
import { type Limits, type Principal, UNLIMITED } from '@continuo/shared/tenant.ts';
import type { EndUser } from './quota/protocol.ts';

/** The limits of one end user, and those of tenants and keys that set them. */
const LIMITS = [
  ['requestsPerMinute', 'userRequestsPerMinute'],
  ['tokensPerMinute', 'userTokensPerMinute'],
  ['tokensPerDay', 'userTokensPerDay'],
  ['tokensPerMonth', 'userTokensPerMonth'],
  ['microsPerDay', 'userMicrosPerDay'],
  ['microsPerMonth', 'userMicrosPerMonth'],
  ['concurrentRequests', 'userConcurrentRequests'],
] as const satisfies readonly (readonly [keyof Limits, keyof Limits])[];

const PREFIX = 'user:';

/** Id of an end user among the limiter's subjects. */
export const endUserId = ({ hash }: EndUser): string => PREFIX + hash;

export const isEndUser = (subjectId: string): boolean => subjectId.startsWith(PREFIX);

/** Returns the hash of an end user's name: per tenant, so that neither logs nor counters reveal the name. */
export const endUserHash = async (tenantId: string, name: string): Promise<string> =>
  (await sha256Hex(`${tenantId}\n${name}`)).slice(0, 16);

/** Returns an end user with the lower of the tenant's and the key's limits; null if end users have none. */
export function endUserOf({ tenant, key }: Principal, hash: string | null): EndUser | null {
  if (hash === null) return null;
  const limits: Partial<Limits> = {};
  for (const [name, source] of LIMITS) {
    const limit = Math.min(tenant.limits[source] ?? Infinity, key.limits[source] ?? Infinity);
    if (limit < Infinity) limits[name] = limit;
  }
  return Object.keys(limits).length === 0 ? null : { hash, limits: { ...UNLIMITED, ...limits } };
}

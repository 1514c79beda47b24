import { ApiError } from '@continuo/shared/errors.ts';
import { toCamelCase, toSnakeCase } from '@continuo/shared/field-names.ts';
import type { keyBody, keyPatch, newKey } from '@continuo/shared/key-objects.ts';
import type { ApiKey, Limits, SomeLimits } from '@continuo/shared/tenant.ts';
import type * as z from 'zod';
import { secondsOrNull } from '../admin/admin-objects.ts';
import { isWithin } from '../tenants/address-ranges.ts';
import type { KeyRecord } from '../tenants/key-store.ts';

/**
 * A key that creates or changes another one grants no models, time, addresses or limits beyond its own. Of
 * the scopes, it grants all but `admin`.
 */

type Terms = z.infer<typeof keyPatch> & Pick<Partial<z.infer<typeof keyBody>>, 'scopes'>;

const beyond = (param: string, message: string): ApiError =>
  new ApiError('invalid_value', `Invalid '${param}': ${message}`, { param });

/** @throws ApiError 400 that names the field which asks for more than the key of the request has */
export function checkGrant(
  { models, expires_at, limits = {}, scopes = [], allowed_addresses: ranges }: Terms,
  held: ApiKey,
): void {
  if (scopes.includes('admin')) throw beyond('scopes', "a key of an account cannot have 'admin'.");
  const foreign = held.models && models?.find((model) => !held.models!.includes(model));
  if (foreign) throw beyond('models', `this key may not use the model '${foreign}'.`);
  if (held.models !== null && models === null) throw beyond('models', 'this key may not use all models.');
  const end = held.expiresAt;
  if (end !== null && expires_at !== undefined && (expires_at === null || expires_at * 1000 > end)) {
    throw beyond('expires_at', 'the time is after the end of this key.');
  }
  const within = held.allowedAddresses;
  if (within !== null && ranges !== undefined && !ranges?.every((range) => isWithin(range, within)))
    throw beyond('allowed_addresses', `this key may only be used from ${within.join(', ')}.`);
  const excess = Object.entries(toCamelCase(limits) as SomeLimits).find(([name, limit]) => {
    const most = held.limits[name as keyof Limits];
    return most !== null && (limit === null || limit! > most);
  });
  if (excess)
    throw beyond('limits', `this key has a lower limit: ${held.limits[excess[0] as keyof Limits]}.`);
}

/** The limits that are set. */
const setLimits = (limits: Limits): z.infer<typeof keyBody>['limits'] =>
  Object.fromEntries(Object.entries(toSnakeCase(limits)).filter(([, limit]) => limit !== null));

/** What a key may do beside its limits, as the body of a request writes it. */
const termsOf = ({
  models,
  expiresAt,
  allowedAddresses,
}: Pick<ApiKey, 'models' | 'expiresAt' | 'allowedAddresses'>) => ({
  models: models && [...models],
  expires_at: secondsOrNull(expiresAt),
  allowed_addresses: allowedAddresses && [...allowedAddresses],
});

/** A new secret for another key gives all that key may. @throws ApiError 400 as `checkGrant` */
export function checkHolds(key: KeyRecord, held: ApiKey): void {
  const unlimited = Object.fromEntries(Object.keys(setLimits(held.limits)).map((name) => [name, null]));
  checkGrant({ ...termsOf(key), limits: { ...unlimited, ...toSnakeCase(key.limits) } }, held);
}

/**
 * Fills in what `body` leaves open with what the key of the request has.
 * @throws ApiError 400 as `checkGrant`
 */
export function granted<T extends z.infer<typeof newKey>>(body: T, held: ApiKey): T {
  const terms = termsOf(held);
  const filled = {
    ...body,
    limits: { ...setLimits(held.limits), ...body.limits },
    models: body.models ?? terms.models,
    expires_at: body.expires_at ?? terms.expires_at,
    allowed_addresses: body.allowed_addresses ?? terms.allowed_addresses,
  };
  checkGrant(filled, held);
  return filled;
}

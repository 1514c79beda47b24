import { ApiError } from '@continuo/shared/errors.ts';
import { toCamelCase, toSnakeCase } from '@continuo/shared/field-names.ts';
import type { keyBody, keyPatch, newKey } from '@continuo/shared/key-objects.ts';
import type { ApiKey, Limits, SomeLimits } from '@continuo/shared/tenant.ts';
import type * as z from 'zod';
import { secondsOrNull } from '../admin/admin-objects.ts';
import { isWithin } from '../tenants/address-ranges.ts';
import type { KeyRecord } from '../tenants/key-store.ts';

/** A key that creates or changes another one never grants more than it may itself. */

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
const given = (limits: Limits): z.infer<typeof keyBody>['limits'] =>
  Object.fromEntries(Object.entries(toSnakeCase(limits)).filter(([, limit]) => limit !== null));

/** A new secret for another key gives all that key may. @throws ApiError 400 as `checkGrant` */
export function checkHolds({ models, expiresAt, limits, allowedAddresses }: KeyRecord, held: ApiKey): void {
  const open = Object.fromEntries(Object.keys(given(held.limits)).map((name) => [name, null]));
  checkGrant(
    {
      models: models && [...models],
      expires_at: secondsOrNull(expiresAt),
      allowed_addresses: allowedAddresses && [...allowedAddresses],
      limits: { ...open, ...toSnakeCase(limits) },
    },
    held,
  );
}

/**
 * Fills in what `body` leaves open with what the key of the request has.
 * @throws ApiError 400 as `checkGrant`
 */
export function granted<T extends z.infer<typeof newKey>>(body: T, held: ApiKey): T {
  const { models, expires_at: end, limits, allowed_addresses: ranges } = body;
  const filled = {
    ...body,
    limits: { ...given(held.limits), ...limits },
    models: models ?? (held.models && [...held.models]),
    expires_at: end ?? secondsOrNull(held.expiresAt),
    allowed_addresses: ranges ?? (held.allowedAddresses && [...held.allowedAddresses]),
  };
  checkGrant(filled, held);
  return filled;
}

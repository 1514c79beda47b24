import { ApiError } from '@continuo/shared/errors.ts';
import { toSnakeCase } from '@continuo/shared/field-names.ts';
import type { keyObject } from '@continuo/shared/key-objects.ts';
import type { planObject, tenantObject } from '@continuo/shared/tenant-objects.ts';
import type * as z from 'zod';
import type { KeyRecord } from '../tenants/key-store.ts';
import type { Plan } from '../tenants/plan-store.ts';
import type { TenantRecord } from '../tenants/tenant-store.ts';

/** Converts records to the objects of the admin API. Times become Unix seconds. */

const seconds = (ms: number): number => Math.floor(ms / 1000);
export const secondsOrNull = (ms: number | null): number | null => (ms === null ? null : seconds(ms));

/** Returns the beginning of a UTC day. */
export const dayStart = (day: string | undefined): number | null =>
  day === undefined ? null : seconds(Date.parse(day));

export const showPlan = (plan: Plan): z.infer<typeof planObject> => ({
  object: 'plan',
  id: plan.id,
  name: plan.name,
  limits: toSnakeCase(plan.limits),
  weight: plan.weight,
  created_at: seconds(plan.createdAt),
});

export const showTenant = (tenant: TenantRecord): z.infer<typeof tenantObject> => ({
  object: 'tenant',
  id: tenant.id,
  name: tenant.name,
  plan: tenant.planId,
  limits: toSnakeCase(tenant.limits),
  weight: tenant.weight,
  dialect: tenant.dialect,
  open_objects: tenant.openObjects,
  any_key_order: tenant.anyKeyOrder,
  wait_for_tokens: tenant.waitForTokens,
  aliases: { ...tenant.aliases },
  suspended: tenant.suspended,
  created_at: seconds(tenant.createdAt),
});

/** @param lastUsed UTC day; undefined = never */
export const showKey = (key: KeyRecord, lastUsed?: string): z.infer<typeof keyObject> => ({
  object: 'key',
  id: key.id,
  tenant: key.tenantId,
  name: key.name,
  scopes: [...key.scopes],
  role: key.role,
  models: key.models && [...key.models],
  limits: toSnakeCase(key.limits),
  created_at: seconds(key.createdAt),
  expires_at: secondsOrNull(key.expiresAt),
  allowed_addresses: key.allowedAddresses && [...key.allowedAddresses],
  last_used_at: dayStart(lastUsed),
  metadata: key.metadata && { ...key.metadata },
  disabled: key.disabled,
  revoked_at: secondsOrNull(key.revokedAt),
  replaced_by: key.replacedBy,
});

/** Returns a page of a list. `items` has one more item than `limit` if there is another page. */
export const page = <T, U>(items: readonly T[], limit: number, show: (item: T) => U) => ({
  object: 'list' as const,
  data: items.slice(0, limit).map(show),
  has_more: items.length > limit,
});

/** Returns the record. @throws ApiError 404 if it is null */
export function existing<T>(record: T | null, kind: string, id: string): T {
  if (record !== null) return record;
  throw new ApiError('not_found', `There is no ${kind} '${id.slice(0, 100)}'.`);
}

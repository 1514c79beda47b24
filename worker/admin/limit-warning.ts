import { askTenant } from '@continuo/limits/limiter-client.ts';
import type { BudgetUse } from '@continuo/limits/quota/protocol.ts';
import type { SomeLimits, TenantLimits } from '@continuo/shared/tenant.ts';
import type { RequestContext } from '../http/request-context.ts';
import { readKey } from '../tenants/stored-key.ts';

/** The limits of a key that can exceed what is left of its tenant's. A cost also reduces the balance. */
const SHARED = [
  { limit: 'tokensPerDay', name: 'tokens_per_day', used: 'day', credit: false },
  { limit: 'tokensPerMonth', name: 'tokens_per_month', used: 'month', credit: false },
  { limit: 'microsPerDay', name: 'micros_per_day', used: 'moneyDay', credit: true },
  { limit: 'microsPerMonth', name: 'micros_per_month', used: 'moneyMonth', credit: true },
] as const;

function leftOf(
  tenant: TenantLimits,
  use: BudgetUse,
  { limit, used, credit }: (typeof SHARED)[number],
): number {
  const total = tenant[limit];
  const left = total === null ? Infinity : total - use[used];
  if (!credit || tenant.creditMicros === null) return Math.max(0, left);
  return Math.max(0, Math.min(left, tenant.creditMicros - use.balance));
}

/** Returns a text if a key's limits are more than what its tenant has left; undefined if they are not. */
export async function limitWarning(
  keyId: string,
  limits: SomeLimits,
  context: RequestContext,
): Promise<string | undefined> {
  const set = SHARED.filter(({ limit }) => (limits[limit] ?? null) !== null);
  const stored = set.length === 0 ? null : (await readKey(context.env.DB, keyId)).key;
  if (stored === null) return undefined;
  const { tenant } = stored.principal;
  const { tenant: use } = await askTenant(context, tenant.id, { kind: 'use', keyId });
  const excess = set
    .map((shared) => ({ ...shared, left: leftOf(tenant.limits, use, shared) }))
    .filter(({ limit, left }) => limits[limit]! > left)
    .map(({ limit, name, left }) => `${name} is ${limits[limit]}, but the account has ${left} left`);
  return excess.length === 0 ? undefined : `${excess.join('; ')}.`;
}

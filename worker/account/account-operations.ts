import {
  keyObject,
  keyPatch,
  listOf,
  newKey,
  newKeyObject,
  ownKey,
  ownUsageQuery,
  pageQuery,
  rotation,
  usageAnswer,
} from '@continuo/shared/account.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { toSnakeCase } from '@continuo/shared/field-names.ts';
import type { Limits, Principal, TenantLimits } from '@continuo/shared/tenant.ts';
import type * as z from 'zod';
import { secondsOrNull, showKey } from '../admin/admin-objects.ts';
import { type AdminOperation, operation } from '../admin/admin-operation.ts';
import { addKey, changeKey, endKey, findKey, keyPage, rotateKey } from '../admin/key-operations.ts';
import { usageList } from '../admin/usage-operations.ts';
import type { BudgetUse } from '../env/limiter-protocol.ts';
import type { RequestContext } from '../http/request-context.ts';
import { unchecked } from '../limits/limit-errors.ts';
import { limiterOf } from '../limits/limiter-client.ts';
import { csvResponse } from './csv.ts';
import { checkGrant, checkHolds, granted } from './grant.ts';

/** What a tenant sees and changes of its own account, under /v1. */

/** The credit is no limit of its own. */
const shownLimits = (held: Limits & Partial<TenantLimits>) => {
  const { creditMicros: _, ...limits } = held;
  return toSnakeCase(limits);
};

const showUse = (use: BudgetUse) => ({
  tokens_per_day: use.day,
  tokens_per_month: use.month,
  micros_per_day: use.spentDay,
  micros_per_month: use.spentMonth,
});

async function showOwn({ key, tenant }: Principal, context: RequestContext): Promise<z.infer<typeof ownKey>> {
  const use = await limiterOf(context, tenant.id)
    .use(key.id)
    .catch(() => {
      throw unchecked();
    });
  const { creditMicros } = tenant.limits;
  return {
    object: 'key',
    id: key.id,
    name: key.name,
    scopes: [...key.scopes],
    models: key.models && [...key.models],
    expires_at: secondsOrNull(key.expiresAt),
    limits: shownLimits(key.limits),
    used: showUse(use.key),
    alerts: use.alerts.map(({ subject, limit, period, share, limitMicros, spentMicros, at }) => ({
      ...{ key: subject === key.id ? key.id : null, limit, period, share_percent: share },
      ...{ limit_micros: limitMicros, spent_micros: spentMicros, reached_at: Math.floor(at / 1000) },
    })),
    tenant: {
      ...{ id: tenant.id, name: tenant.name, limits: shownLimits(tenant.limits) },
      used: showUse(use.tenant),
      balance_micros: creditMicros === null ? null : creditMicros - use.tenant.spentEver,
    },
  };
}

/** A key cannot change or end keys of other tenants, nor itself. @throws ApiError 404, 409 */
async function manageable(id: string, { key }: Principal, context: RequestContext) {
  const found = await findKey(id, key.tenantId, context);
  if (found.id === key.id) throw new ApiError('conflict', 'A key cannot change itself. Use another key.');
  return found;
}

export const ACCOUNT_OPERATIONS: readonly AdminOperation[] = [
  operation(
    {
      method: 'GET',
      path: '/key',
      summary: 'Show the key of the request, the limits of its account, and what they have left',
      status: 200,
      response: ownKey,
      run: ({ principal }, context) => showOwn(principal, context),
    },
    null,
  ),
  operation(
    {
      method: 'GET',
      path: '/usage',
      summary: 'Show the usage of the account by day, model and key, without running requests',
      status: 200,
      query: ownUsageQuery,
      response: usageAnswer,
      async run({ query, principal }, context) {
        const list = await usageList(query, principal.tenant.id, context);
        return query.format === 'csv' ? csvResponse(list.data) : list;
      },
    },
    null,
  ),
  operation(
    {
      method: 'GET',
      path: '/keys',
      summary: 'List the keys of the account',
      status: 200,
      query: pageQuery,
      response: listOf(keyObject),
      run: ({ query, principal }, context) => keyPage(principal.tenant.id, query, context),
    },
    'keys',
  ),
  operation(
    {
      method: 'POST',
      path: '/keys',
      summary: 'Create a key that may at most what this one may; only this response shows it',
      status: 200,
      body: newKey,
      example: { name: 'web server', limits: { tokens_per_day: 100_000 } },
      response: newKeyObject,
      run: ({ body, principal }, context) =>
        addKey(principal.tenant.id, granted(body, principal.key), context),
    },
    'keys',
  ),
  operation(
    {
      method: 'GET',
      path: '/keys/{id}',
      summary: 'Show a key of the account',
      status: 200,
      response: keyObject,
      run: async ({ id, principal }, context) => showKey(await findKey(id, principal.tenant.id, context)),
    },
    'keys',
  ),
  operation(
    {
      method: 'PATCH',
      path: '/keys/{id}',
      summary: 'Change a key without replacing it, or disable it',
      status: 200,
      body: keyPatch,
      example: { disabled: true },
      response: keyObject,
      async run({ id, body, principal }, context) {
        checkGrant(body, principal.key);
        return changeKey(await manageable(id, principal, context), body, context);
      },
    },
    'keys',
  ),
  operation(
    {
      method: 'POST',
      path: '/keys/{id}/rotate',
      summary: 'Replace a key by a new one with the same settings; the old one works until the overlap ends',
      status: 200,
      body: rotation,
      example: { overlap_seconds: 3600 },
      response: newKeyObject,
      async run({ id, body, principal }, context) {
        const old = await findKey(id, principal.tenant.id, context);
        checkHolds(old, principal.key);
        return rotateKey(old, body, context);
      },
    },
    'keys',
  ),
  operation(
    {
      method: 'DELETE',
      path: '/keys/{id}',
      summary: 'Revoke a key',
      status: 200,
      response: keyObject,
      run: async ({ id, principal }, context) => endKey(await manageable(id, principal, context), context),
    },
    'keys',
  ),
];

import { usageAnswer, usageQuery } from '@continuo/shared/account.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import type * as z from 'zod';
import type { RequestContext } from '../http/request-context.ts';
import { endUserHash } from '../limits/end-user.ts';
import { dayName } from '../usage/usage-ledger.ts';
import { MAX_USAGE_ROWS, queryUsage, SUMS, type UsageSums } from '../usage/usage-query.ts';
import { type AdminOperation, operation } from './admin-operation.ts';

const mean = (sum: number, count: number): number | null => (count === 0 ? null : sum / count);

function showRow({ latency_ms, first_token_ms, first_tokens, ...row }: UsageSums) {
  return {
    object: 'usage',
    ...row,
    mean_latency_ms: mean(latency_ms, row.requests),
    mean_first_token_ms: mean(first_token_ms, first_tokens),
  };
}

/** Returns the sums of all rows. */
function total(rows: readonly UsageSums[]): Record<string, number> {
  return Object.fromEntries(SUMS.map((name) => [name, rows.reduce((sum, row) => sum + row[name], 0)]));
}

export const DAY_MS = 86_400_000;

/** Returns the first and last day of a query. Without a first day, it covers 31 days. */
export function daysOf({ from, to }: { from?: string | undefined; to?: string | undefined }, now: number) {
  const last = to ?? dayName(now);
  return { from: from ?? dayName(Date.parse(last) - 30 * DAY_MS), to: last };
}

const tooManyRows = (): ApiError =>
  new ApiError(
    'invalid_value',
    `The query has more than ${MAX_USAGE_ROWS} rows. Group by fewer columns, or narrow from, to, tenant, key, model or user.`,
    { param: 'group_by' },
  );

const userWithoutTenant = (): ApiError =>
  new ApiError('invalid_value', "Invalid 'user': an end user belongs to a tenant. Add 'tenant'.", {
    param: 'user',
  });

/** Answers a usage query; `tenantId` null = all tenants. @throws ApiError 400 for too many rows, or a user without a tenant */
export async function usageList(
  query: Omit<z.infer<typeof usageQuery>, 'tenant'>,
  tenantId: string | null,
  { env, now }: RequestContext,
) {
  if (query.user !== undefined && tenantId === null) throw userWithoutTenant();
  const filter = {
    ...daysOf(query, now()),
    endUser: query.user === undefined ? null : await endUserHash(tenantId!, query.user),
    tenantId,
    keyId: query.key ?? null,
    model: query.model ?? null,
  };
  const rows = await queryUsage(env.USAGE_DB, filter, [...new Set(query.group_by)]);
  if (rows === null) throw tooManyRows();
  return { object: 'list', data: rows.map(showRow), has_more: false, total: total(rows) };
}

export const USAGE_OPERATIONS: readonly AdminOperation[] = [
  operation({
    method: 'GET',
    path: '/usage',
    summary: 'Show usage by day, tenant, model, key and end user, without running requests',
    roles: ['billing', 'read-only', 'tenant'],
    query: usageQuery,
    response: usageAnswer,
    run: ({ query, tenantId }, context) => usageList(query, tenantId ?? query.tenant ?? null, context),
  }),
];

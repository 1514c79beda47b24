import { ApiError } from '@continuo/shared/errors.ts';
import { usageQuery, usageResponse } from '@continuo/shared/usage-queries.ts';
import * as z from 'zod';
import type { RequestContext } from '../http/request-context.ts';
import { endUserHash } from '../limits/end-user.ts';
import type { Operation } from '../operations/operation.ts';
import { dayName } from '../usage/usage-ledger.ts';
import { queryUsage, type UsageSums } from '../usage/usage-query.ts';
import { adminOperation } from './admin-operation.ts';

const mean = (sum: number, count: number): number | null => (count === 0 ? null : sum / count);

function showRow({ latency_ms, first_token_ms, first_tokens, ...row }: UsageSums) {
  return {
    object: 'usage',
    ...row,
    mean_latency_ms: mean(latency_ms, row.requests),
    mean_first_token_ms: mean(first_token_ms, first_tokens),
  };
}

export const DAY_MS = 86_400_000;

/** Returns the first and last day of a query. Without a first day, it covers 31 days. */
export function daysOf({ from, to }: { from?: string | undefined; to?: string | undefined }, now: number) {
  const last = to ?? dayName(now);
  return { from: from ?? dayName(Date.parse(last) - 30 * DAY_MS), to: last };
}

/** Returns the values of a row's groups; none for an empty text. @throws ApiError 400 */
function valuesIn(after: string, groups: readonly string[]): readonly string[] {
  if (after === '') return [];
  try {
    return z.array(z.string()).length(groups.length).parse(JSON.parse(after));
  } catch {
    const message = `Invalid 'after': expected a JSON list of ${groups.join(', ')}, as 'next' of the previous page.`;
    throw new ApiError('invalid_value', message, { param: 'after' });
  }
}

const userWithoutTenant = (): ApiError =>
  new ApiError('invalid_value', "Invalid 'user': an end user belongs to a tenant. Add 'tenant'.", {
    param: 'user',
  });

/** Answers a usage query; `tenantId` null = all tenants. @throws ApiError 400 for a wrong `after` or user */
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
  const { limit } = query;
  const groups = [...new Set(query.group_by)];
  const after = valuesIn(query.after, groups);
  const { rows, total } = await queryUsage(env.USAGE_DB, filter, groups, after, limit + 1);
  const data = rows.slice(0, limit).map(showRow);
  const has_more = rows.length > limit;
  const next = has_more ? JSON.stringify(groups.map((group) => data.at(-1)![group])) : null;
  return { object: 'list', data, has_more, next, total };
}

export const USAGE_OPERATIONS: readonly Operation[] = [
  adminOperation('GET', '/usage', {
    summary: 'Show usage by day, tenant, model, key and end user, without running requests',
    roles: ['billing', 'read-only', 'tenant'],
    query: usageQuery,
    response: usageResponse,
    run: ({ query, tenantId }, context) => usageList(query, tenantId ?? query.tenant ?? null, context),
  }),
];

import { endUserHash } from '@continuo/limits/end-user.ts';
import { askTenant } from '@continuo/limits/limiter-client.ts';
import { querySummary } from '@continuo/limits/usage/usage-summary.ts';
import { DAY_MS, dayName, type UsageQuestion, type UsageSums } from '@continuo/limits/usage/usage-sums.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { usageQuery, usageResponse } from '@continuo/shared/usage-queries.ts';
import * as z from 'zod';
import type { RequestContext } from '../http/request-context.ts';
import type { Operation } from '../operations/operation.ts';
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

/** A report takes so long at most, unless the database was away. */
const REPORT_TAKES_MS = 60_000;

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

/** The summary of all tenants has neither keys nor end users. @throws ApiError 400 */
function requireTenant({ user, key, group_by: groups }: Omit<z.infer<typeof usageQuery>, 'tenant'>): void {
  const wrong = (param: string, what: string): never => {
    const message = `Invalid '${param}': ${what} belongs to a tenant. Add 'tenant'.`;
    throw new ApiError('invalid_value', message, { param });
  };
  if (user !== undefined) wrong('user', 'an end user');
  if (key !== undefined) wrong('key', 'a key');
  for (const group of groups)
    if (group === 'key' || group === 'user') wrong('group_by', `the group '${group}'`);
}

/** The tenant's object cannot be reached, or its usage of an older release cannot be read. */
export function unavailable(): never {
  const message = 'The usage of this tenant cannot be read right now. Retry the request.';
  throw new ApiError('server_is_overloaded', message);
}

/** Returns the usage of a tenant, exact to the last request, or of all tenants if the id is null. */
async function usageOf(question: UsageQuestion, tenantId: string | null, context: RequestContext) {
  const { env, settings, now } = context;
  if (tenantId === null) {
    const usage = await querySummary(env.DB, question);
    return { ...usage, asOf: now() - settings.USAGE_REPORT_MS - REPORT_TAKES_MS };
  }
  const asked = askTenant(context, tenantId, { kind: 'usage', tenantId, ...question });
  const usage = await asked.catch(unavailable);
  return { ...usage, asOf: now() };
}

/** Answers a usage query; `tenantId` null = all tenants. @throws ApiError 400 for a wrong query, 503 */
export async function usageList(
  query: Omit<z.infer<typeof usageQuery>, 'tenant'>,
  tenantId: string | null,
  context: RequestContext,
) {
  if (tenantId === null) requireTenant(query);
  const { limit } = query;
  const groups = [...new Set(query.group_by)];
  const question = {
    ...daysOf(query, context.now()),
    endUser: query.user === undefined ? null : await endUserHash(tenantId!, query.user),
    keyId: query.key ?? null,
    model: query.model ?? null,
    groups,
    after: valuesIn(query.after, groups),
    limit: limit + 1,
  };
  const { rows, total, asOf } = await usageOf(question, tenantId, context);
  const data = rows.slice(0, limit).map(showRow);
  const has_more = rows.length > limit;
  const next = has_more ? JSON.stringify(groups.map((group) => data.at(-1)![group])) : null;
  return { object: 'list', data, has_more, next, total, as_of: Math.floor(asOf / 1000) };
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

import { unchecked } from '@continuo/limits/limit-errors.ts';
import { askTenant } from '@continuo/limits/limiter-client.ts';
import type { BudgetUse } from '@continuo/limits/quota/protocol.ts';
import { nameOf } from '@continuo/limits/usage/reservation-id.ts';
import type { UsageRecord } from '@continuo/limits/usage/usage-record.ts';
import { pageQuery, pageSize } from '@continuo/shared/account-fields.ts';
import { csvText } from '@continuo/shared/csv.ts';
import { ApiError, type ErrorCode } from '@continuo/shared/errors.ts';
import { toSnakeCase } from '@continuo/shared/field-names.ts';
import {
  keyList,
  keyObject,
  keyPatch,
  newKey,
  newKeyObject,
  rotation,
} from '@continuo/shared/key-objects.ts';
import { ownKey } from '@continuo/shared/own-key.ts';
import type { Limits, Principal, TenantLimits } from '@continuo/shared/tenant.ts';
import { requestObject } from '@continuo/shared/usage.ts';
import { ownUsageQuery, requestList, usageResponse } from '@continuo/shared/usage-queries.ts';
import * as z from 'zod';
import { dayStart, existing, page, secondsOrNull } from '../admin/admin-objects.ts';
import {
  addKey,
  changeKey,
  endKey,
  findKey,
  keyPage,
  keyShown,
  rotateKey,
  usesOf,
} from '../admin/key-operations.ts';
import { unavailable, usageList } from '../admin/usage-operations.ts';
import type { RequestContext } from '../http/request-context.ts';
import { type Operation, operation } from '../operations/operation.ts';
import { checkGrant, checkHolds, granted } from './grant.ts';

/** What a tenant sees and changes of its own account, under /v1. */

/** The credit is no limit of its own. */
const shownLimits = (held: Limits & Partial<TenantLimits>) => {
  const { creditMicros: _, ...limits } = held;
  return toSnakeCase(limits);
};

const leftOf = (limit: number | null, used: number) => limit && Math.max(0, limit - used);

const showUse = ({ day, month, spentDay, spentMonth }: BudgetUse, limits: Limits) => ({
  used: {
    tokens_per_day: day,
    tokens_per_month: month,
    micros_per_day: spentDay,
    micros_per_month: spentMonth,
  },
  left: {
    tokens_per_day: leftOf(limits.tokensPerDay, day),
    tokens_per_month: leftOf(limits.tokensPerMonth, month),
    micros_per_day: leftOf(limits.microsPerDay, spentDay),
    micros_per_month: leftOf(limits.microsPerMonth, spentMonth),
  },
});

async function showOwn({ key, tenant }: Principal, context: RequestContext): Promise<z.infer<typeof ownKey>> {
  const uses = await usesOf([key], context);
  const use = await askTenant(context, tenant.id, { kind: 'use', keyId: key.id }).catch(() => {
    throw unchecked();
  });
  const { creditMicros } = tenant.limits;
  return {
    object: 'key',
    id: key.id,
    name: key.name,
    scopes: [...key.scopes],
    role: key.scopes.includes('admin') ? (key.role ?? 'owner') : null,
    models: key.models && [...key.models],
    expires_at: secondsOrNull(key.expiresAt),
    allowed_addresses: key.allowedAddresses && [...key.allowedAddresses],
    last_used_at: dayStart(uses.get(key.id)),
    limits: shownLimits(key.limits),
    ...showUse(use.key, key.limits),
    alerts: use.alerts.map(({ subject, limit, period, share, limitMicros, spentMicros, at }) => ({
      key: subject === key.id ? key.id : null,
      limit,
      period,
      share_percent: share,
      limit_micros: limitMicros,
      spent_micros: spentMicros,
      reached_at: Math.floor(at / 1000),
    })),
    tenant: {
      id: tenant.id,
      name: tenant.name,
      limits: shownLimits(tenant.limits),
      ...showUse(use.tenant, tenant.limits),
      wait_for_tokens: tenant.waitForTokens,
      balance_micros: creditMicros === null ? null : creditMicros - use.tenant.spentEver,
    },
  };
}

/** A key cannot change or end keys of other tenants, nor itself. @throws ApiError 404, 409 */
async function manageable(id: string, { key }: Principal, context: RequestContext) {
  const managed = await findKey(id, key.tenantId, context);
  if (managed.id === key.id) throw new ApiError('conflict', 'A key cannot change itself. Use another key.');
  return managed;
}

/** Returns a request of the account. @throws ApiError 404 */
async function showRequest(
  id: string,
  tenantId: string,
  context: RequestContext,
): Promise<z.infer<typeof requestObject>> {
  const question = { kind: 'request', tenantId, name: id } as const;
  const asked = await askTenant(context, tenantId, question).catch(unavailable);
  return { ...shownRequest(existing(asked, 'request', id)), id };
}

async function listRequests(
  { limit, after }: z.infer<typeof requestQuery>,
  tenantId: string,
  context: RequestContext,
): Promise<z.infer<typeof requestList>> {
  const before = after === '' ? Number.MAX_SAFE_INTEGER : Number(after);
  const question = { kind: 'requests', tenantId, before, limit: limit + 1 } as const;
  const asked = await askTenant(context, tenantId, question).catch(unavailable);
  const shown = page(asked, limit, ({ record }) => shownRequest(record));
  return { ...shown, next: shown.has_more ? String(asked[limit - 1]!.number) : null };
}

function shownRequest(record: UsageRecord): z.infer<typeof requestObject> {
  const { usage } = record;
  return {
    object: 'request',
    id: nameOf(record.requestId),
    created_at: Math.floor(record.startedAt / 1000),
    key: record.keyId,
    user: record.endUser ?? null,
    model: record.model,
    status: record.status,
    error_code: record.errorCode,
    finish_reasons: [...record.finishReasons],
    prompt_tokens: usage.promptTokens,
    cached_tokens: usage.cachedTokens,
    completion_tokens: usage.completionTokens,
    cost_micros: record.cost,
    price_version: record.priceVersion?.toString() ?? null,
    latency_ms: record.latencyMs,
    first_token_ms: record.firstTokenMs,
  };
}

/** Rows of CSV have no place for the address of the next page. */
function nextPage(query: object): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return `</v1/usage?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}>; rel="next"`;
}

const QUERY: readonly ErrorCode[] = ['integer_above_max_value', 'integer_below_min_value'];

const CHANGE: readonly ErrorCode[] = ['conflicting_parameters', 'unsupported_parameter', 'conflict'];

/** The pages are those of the time of the first: what ends meanwhile is before them. */
const requestQuery = z.strictObject({
  limit: pageSize(1_000, 100),
  after: z
    .string()
    .regex(/^\d{0,15}$/, 'expected the member next of a page')
    .default('')
    .describe('`next` of the previous page.'),
});

export const ACCOUNT_OPERATIONS: readonly Operation[] = [
  operation('GET', '/v1/requests', {
    id: 'listRequests',
    summary: 'List the requests of the account that have ended, the last one first, without their text.',
    scope: null,
    query: requestQuery,
    response: requestList,
    errors: ['unsupported_parameter', 'invalid_value', ...QUERY],
    run: ({ query, principal }, context) => listRequests(query, principal.tenant.id, context),
  }),
  operation('GET', '/v1/requests/{id}', {
    id: 'showRequest',
    summary: 'Show a request of the account that has ended, without its text.',
    scope: null,
    response: requestObject,
    run: ({ id, principal }, context) => showRequest(id, principal.tenant.id, context),
  }),
  operation('GET', '/v1/key', {
    id: 'showOwnKey',
    summary: 'Show the key of the request, and the limits of its account.',
    scope: null,
    response: ownKey,
    run: ({ principal }, context) => showOwn(principal, context),
  }),
  operation('GET', '/v1/usage', {
    id: 'listUsage',
    summary: 'Show the usage of the account by day, model, key and end user, as JSON or CSV.',
    scope: null,
    query: ownUsageQuery,
    response: usageResponse,
    responseHeaders: { link: 'Address of the next page, for CSV; absent on the last one.' },
    errors: ['unsupported_parameter', 'invalid_type', ...QUERY],
    async run({ query, principal }, context) {
      const list = await usageList(query, principal.tenant.id, context);
      if (query.format === 'json') return list;
      const columns = ['object', ...new Set(query.group_by), ...Object.keys(list.total)];
      const text = csvText([...columns, 'mean_latency_ms', 'mean_first_token_ms'], list.data);
      const headers = new Headers({ 'content-type': 'text/csv; charset=utf-8' });
      if (list.next !== null) headers.set('link', nextPage({ ...query, after: list.next }));
      return new Response(text, { headers });
    },
  }),
  operation('GET', '/v1/keys', {
    id: 'listKeys',
    summary: 'List the keys of the account. This and the next need a key with the scope keys.',
    scope: 'keys',
    query: pageQuery,
    response: keyList,
    errors: ['unsupported_parameter', ...QUERY],
    run: ({ query, principal }, context) => keyPage(principal.tenant.id, query, context),
  }),
  operation('POST', '/v1/keys', {
    id: 'createKey',
    summary: 'Create a key that may at most what the own key may. Only this response shows it.',
    scope: 'keys',
    body: newKey,
    status: 201,
    response: newKeyObject,
    errors: CHANGE,
    run: ({ body, principal, entry }, context) =>
      addKey(principal.tenant.id, granted(body, principal.key), entry, context),
  }),
  operation('GET', '/v1/keys/{id}', {
    id: 'showKey',
    summary: 'Show a key of the account, without the key itself.',
    scope: 'keys',
    response: keyObject,
    run: async ({ id, principal }, context) =>
      keyShown(await findKey(id, principal.tenant.id, context), context),
  }),
  operation('PATCH', '/v1/keys/{id}', {
    id: 'changeKey',
    summary: 'Change a key without replacing it, or disable it.',
    scope: 'keys',
    body: keyPatch,
    response: keyObject,
    errors: CHANGE,
    async run({ id, body, principal, entry }, context) {
      const old = await manageable(id, principal, context);
      checkGrant(body, principal.key);
      // Any key can be disabled. What changes another one otherwise, or enables it, gives what it has.
      if (Object.keys(body).length !== 1 || body.disabled !== true) checkHolds(old, principal.key);
      return changeKey(old, body, entry, context);
    },
  }),
  operation('POST', '/v1/keys/{id}/rotate', {
    id: 'rotateKey',
    summary: 'Replace a key by a new one with the same settings. The old one works until the overlap ends.',
    scope: 'keys',
    body: rotation,
    status: 201,
    response: newKeyObject,
    errors: CHANGE,
    async run({ id, body, principal, entry }, context) {
      const old = await findKey(id, principal.tenant.id, context);
      checkHolds(old, principal.key);
      return rotateKey(old, body, entry, context);
    },
  }),
  operation('DELETE', '/v1/keys/{id}', {
    id: 'revokeKey',
    summary: 'Revoke a key.',
    scope: 'keys',
    response: keyObject,
    errors: ['conflict'],
    run: async ({ id, principal, entry }, context) =>
      endKey(await manageable(id, principal, context), entry, context),
  }),
];

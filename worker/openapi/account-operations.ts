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
import type { ErrorCode } from '@continuo/shared/errors.ts';
import { toSnakeCase } from '@continuo/shared/field-names.ts';
import { UNLIMITED } from '@continuo/shared/tenant.ts';
import { requestObject } from '@continuo/shared/usage.ts';
import * as z from 'zod';
import type { HeaderDescriptions } from '../http/headers.ts';
import { BODY, CALLER, type OperationGroup } from './documented-operation.ts';

const KEY = {
  object: 'key',
  id: 'q3Xw9LkT2bZc',
  tenant: 'acme',
  name: 'web server',
  scopes: ['completions', 'models'],
  role: null,
  models: null,
  limits: { tokens_per_day: 100_000 },
  created_at: 1_795_000_000,
  expires_at: null,
  allowed_addresses: null,
  last_used_at: 1_795_046_400,
  ...{ metadata: { team: 'search' }, disabled: false },
  revoked_at: null,
  replaced_by: null,
};
const { creditMicros: _, ...UNLIMITED_KEY } = UNLIMITED;
const LIMITS = {
  ...toSnakeCase(UNLIMITED_KEY),
  ...{ tokens_per_day: 100_000, micros_per_month: 100_000_000, user_requests_per_minute: 20 },
};
const USED = {
  ...{ tokens_per_day: 1451, tokens_per_month: 9230 },
  ...{ micros_per_day: 1208, micros_per_month: 80_000_312 },
};
const LEFT = {
  ...{ tokens_per_day: 98_549, tokens_per_month: null },
  ...{ micros_per_day: null, micros_per_month: 19_999_688 },
};
const ALERT = {
  ...{ key: null, limit: 'micros_per_month', period: '2030-01', share_percent: 80 },
  ...{ limit_micros: 100_000_000, spent_micros: 80_000_312, reached_at: 1_895_000_000 },
};
const OWN_KEY = {
  ...{ object: 'key', id: KEY.id, name: KEY.name, scopes: KEY.scopes, models: null, expires_at: null },
  ...{ allowed_addresses: null, last_used_at: KEY.last_used_at },
  ...{ limits: LIMITS, used: USED, left: LEFT, alerts: [ALERT] },
  tenant: {
    ...{ id: 'acme', name: 'Acme', limits: LIMITS, used: USED, left: LEFT },
    ...{ wait_for_tokens: false, balance_micros: null },
  },
};
const SUMS = {
  ...{ requests: 12, completed: 11, failed: 1, cancelled: 0, abandoned: 0, finish_stop: 9, finish_length: 2 },
  ...{ prompt_tokens: 840, cached_tokens: 320, completion_tokens: 611, cost_micros: 1208 },
};
const REQUEST = {
  ...{ object: 'request', id: 'req_4f1c', created_at: 1_795_000_000, key: KEY.id, user: null },
  ...{ model: 'default', status: 'completed', error_code: null, finish_reasons: ['length'] },
  ...{ prompt_tokens: 12, cached_tokens: 8, completion_tokens: 16, cost_micros: 30 },
  ...{ price_version: '7', latency_ms: 420, first_token_ms: 38 },
};
const USAGE = {
  object: 'list',
  data: [
    {
      object: 'usage',
      day: '2030-01-31',
      model: 'default',
      ...SUMS,
      mean_latency_ms: 420,
      mean_first_token_ms: 38,
    },
  ],
  ...{ has_more: false, next: null },
  total: SUMS,
};

const CHANGE: readonly ErrorCode[] = [
  ...new Set([
    ...CALLER,
    ...BODY,
    'conflicting_parameters',
    'unsupported_parameter',
    'not_found',
    'conflict',
  ] as const),
];

const queryOf = (schema: z.ZodObject): HeaderDescriptions =>
  Object.fromEntries(
    Object.entries(schema.shape).map(([name, field]) => [
      name,
      z.globalRegistry.get(field)?.description ?? '',
    ]),
  );

const key = { name: 'Key', schema: keyObject, example: KEY };
const whole = { name: 'NewKey', schema: newKeyObject, example: { ...KEY, key: 'sk-…' } };

/** A tenant's own account. */
export const ACCOUNT_OPERATIONS: OperationGroup = {
  'GET /v1/key': {
    id: 'showOwnKey',
    summary: 'Show the key of the request, and the limits of its account.',
    answer: { name: 'OwnKey', schema: ownKey, example: OWN_KEY },
    errors: CALLER,
  },
  'GET /v1/requests/:rest': {
    id: 'showRequest',
    summary: 'Show a request of the account that has ended, without its text.',
    answer: { name: 'Request', schema: requestObject, example: REQUEST },
    errors: [...CALLER, 'not_found'],
  },
  'GET /v1/usage': {
    id: 'listUsage',
    summary: 'Show the usage of the account by day, model, key and end user, as JSON or CSV.',
    query: queryOf(ownUsageQuery),
    answer: { name: 'Usage', schema: usageAnswer, example: USAGE },
    answerHeaders: { link: 'Address of the next page, for CSV; absent on the last one.' },
    errors: [
      ...CALLER,
      'unsupported_parameter',
      'invalid_type',
      'integer_above_max_value',
      'integer_below_min_value',
    ],
  },
  'GET /v1/keys': {
    id: 'listKeys',
    summary: 'List the keys of the account. This and the next need a key with the scope keys.',
    query: queryOf(pageQuery),
    answer: {
      name: 'KeyList',
      schema: listOf(keyObject),
      example: { object: 'list', data: [KEY], has_more: false },
    },
    errors: [...CALLER, 'unsupported_parameter', 'integer_above_max_value', 'integer_below_min_value'],
  },
  'POST /v1/keys': {
    id: 'createKey',
    summary: 'Create a key that may at most what the own key may. Only this response shows it.',
    body: {
      name: 'KeyRequest',
      schema: newKey,
      examples: { limited: { name: 'web server', limits: KEY.limits } },
    },
    status: 201,
    answer: whole,
    errors: CHANGE,
  },
  'GET /v1/keys/:rest': {
    id: 'showKey',
    summary: 'Show a key of the account, without the key itself.',
    answer: key,
    errors: [...CALLER, 'not_found'],
  },
  'PATCH /v1/keys/:rest': {
    id: 'changeKey',
    summary: 'Change a key without replacing it, or disable it.',
    body: { name: 'KeyChange', schema: keyPatch, examples: { disable: { disabled: true } } },
    answer: key,
    errors: CHANGE,
  },
  'POST /v1/keys/:rest/rotate': {
    id: 'rotateKey',
    summary: 'Replace a key by a new one with the same settings. The old one works until the overlap ends.',
    body: { name: 'KeyRotation', schema: rotation, examples: { hour: { overlap_seconds: 3600 } } },
    status: 201,
    answer: whole,
    errors: CHANGE,
  },
  'DELETE /v1/keys/:rest': {
    id: 'revokeKey',
    summary: 'Revoke a key.',
    answer: key,
    errors: [...CALLER, 'not_found', 'conflict'],
  },
};

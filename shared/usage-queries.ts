import * as z from 'zod';
import { listOf, pageSize, seconds } from './account-fields.ts';
import { documented } from './documented.ts';
import { REQUEST_EXAMPLE, requestObject, USAGE_GROUPS, usageRow } from './usage.ts';

/** Usage: queries and responses of the admin API and of a tenant's account. */

export const day = z.iso.date('expected a day such as 2026-11-30');
const usageGroup = z.enum(USAGE_GROUPS);
export const usageQuery = z.strictObject({
  from: day.optional().describe('First UTC day, inclusive. Default: 30 days before `to`.'),
  to: day.optional().describe('Last UTC day, inclusive. Default: today.'),
  tenant: z.string().optional().describe('Only this tenant.'),
  key: z.string().optional().describe('Only this key.'),
  model: z.string().optional().describe('Only this model.'),
  user: z.string().optional().describe('Only requests with this name of an end user in their field `user`.'),
  group_by: z
    .string()
    .default('day,model')
    .transform((text) => text.split(','))
    .pipe(z.array(usageGroup).min(1))
    .describe(
      'Groups, comma-separated: day, tenant, model, key, user. The last two need a tenant. With user: only requests that name one.',
    ),
  limit: pageSize(10_000, 10_000),
  after: z.string().default('').describe('`next` of the previous page: the groups of its last row, as JSON.'),
});
export const usageResponse = listOf(usageRow).extend({
  next: z.string().nullable().describe('`after` of the next page; null = there is none.'),
  total: z.record(z.string(), z.int()).describe('Sums of the rows of all pages.'),
  as_of: seconds.describe('Unix seconds: requests that had ended by then are counted. For one tenant: now.'),
});

const SUMS = {
  requests: 12,
  completed: 11,
  failed: 1,
  cancelled: 0,
  abandoned: 0,
  finish_stop: 9,
  finish_length: 2,
  prompt_tokens: 840,
  cached_tokens: 320,
  completion_tokens: 611,
  cost_micros: 1208,
};
const USAGE: z.infer<typeof usageRow> = {
  object: 'usage',
  day: '2030-01-31',
  model: 'default',
  ...SUMS,
  mean_latency_ms: 420,
  mean_first_token_ms: 38,
};
usageResponse.register(documented, {
  name: 'Usage',
  example: { object: 'list', data: [USAGE], has_more: false, next: null, total: SUMS, as_of: 1_900_000_000 },
});

/** Ended requests, the last one first. */
export const requestList = listOf(requestObject).extend({
  next: z.string().nullable().describe('`after` of the next page; null = there is none.'),
});
requestList.register(documented, {
  name: 'RequestList',
  example: { object: 'list', data: [REQUEST_EXAMPLE], has_more: false, next: null },
});

export const ownUsageQuery = usageQuery.omit({ tenant: true }).extend({
  format: z.enum(['json', 'csv']).default('json').describe('Form of the answer.'),
});

import * as z from 'zod';
import { integer } from '../../shared/json-fields.ts';
import { dialectName, limits, scope, weight } from '../../shared/tenant.ts';
import { USAGE_GROUPS } from '../usage/usage-query.ts';
import { toSnakeCase } from './field-names.ts';

/** Requests and responses of the admin API, for validation and for its OpenAPI document. */

const identifier = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/);
const displayName = z.string().trim().min(1).max(200).describe('Name for people.');

const limitShape = toSnakeCase(limits.shape);

const limitFields = z.strictObject(limitShape).partial();
const ownLimits = limitFields.describe(
  'Own limits. null removes the limit of the plan; an absent limit follows the plan.',
);

const changeOf = (limit: z.ZodNullable<z.ZodInt>) => z.union([limit, z.literal('plan')]);
const limitChangeShape = Object.fromEntries(
  Object.entries(limitShape).map(([name, limit]) => [name, changeOf(limit)]),
) as Record<keyof typeof limitShape, ReturnType<typeof changeOf>>;

const limitChanges = z
  .strictObject(limitChangeShape)
  .partial()
  .describe("Limits to change. null removes a limit; 'plan' makes it follow the plan again.");

/** Unix seconds. */
const seconds = z.int();

const share = weight.describe('Share of an origin relative to other waiting tenants.');

export const planBody = z.strictObject({
  id: identifier.describe('Id of the plan: lower-case letters, digits and hyphens.'),
  name: displayName,
  limits: limitFields
    .default({})
    .describe('Limits of each tenant with this plan. An absent limit is no limit.'),
  weight: share.default(1),
});
export const planPatch = z
  .strictObject({
    name: displayName,
    limits: limitFields.describe('Limits to change; the others stay. null removes a limit.'),
    weight: share,
  })
  .partial();
export const planObject = z.object({
  object: z.literal('plan'),
  id: z.string(),
  name: z.string(),
  limits: limitFields,
  weight: z.number(),
  created_at: seconds,
});

const planOfTenant = identifier.nullable().describe('Id of the plan; null = no plan.');
const ownWeight = weight.nullable().describe("Share of an origin; null = the plan's.");
const tenantDialect = dialectName.describe('Dialect of requests without the header x-dialect.');

export const tenantBody = z.strictObject({
  id: identifier.optional().describe('Id of the tenant. If absent, the server creates one.'),
  name: displayName,
  plan: planOfTenant.default(null),
  limits: ownLimits.default({}),
  weight: ownWeight.default(null),
  dialect: tenantDialect.default('openai'),
});
export const tenantPatch = z
  .strictObject({
    name: displayName,
    plan: planOfTenant,
    limits: limitChanges,
    weight: ownWeight,
    dialect: tenantDialect,
    suspended: z.boolean().describe('Rejects all requests of the tenant.'),
  })
  .partial();
export const tenantObject = z.object({
  object: z.literal('tenant'),
  id: z.string(),
  name: z.string(),
  plan: z.string().nullable(),
  limits: limitFields,
  weight: z.number().nullable(),
  dialect: dialectName,
  suspended: z.boolean(),
  created_at: seconds,
});

export const keyBody = z.strictObject({
  tenant: identifier.describe('Id of the tenant.'),
  name: displayName,
  scopes: z
    .array(scope)
    .min(1)
    .default(['completions', 'models'])
    .describe("Endpoints that the key may use. 'admin' must be the only scope, for the tenant 'operator'."),
  models: z
    .array(z.string().min(1))
    .min(1)
    .nullable()
    .default(null)
    .describe('Models that the key may use; null = all.'),
  limits: limitFields.default({}).describe("Limits of this key, in addition to the tenant's."),
  expires_at: seconds.nullable().default(null).describe('Unix seconds; null = never.'),
});
export const rotation = z.strictObject({
  overlap_seconds: integer(0, 2_592_000)
    .default(86_400)
    .describe('Time for which the old key keeps working.'),
});
export const keyObject = z.object({
  object: z.literal('key'),
  id: z.string(),
  tenant: z.string(),
  name: z.string(),
  scopes: z.array(scope),
  models: z.array(z.string()).nullable(),
  limits: limitFields,
  created_at: seconds,
  expires_at: seconds.nullable(),
  revoked_at: seconds.nullable(),
  replaced_by: z.string().nullable(),
});
/** The only responses that contain a whole key. */
export const newKeyObject = keyObject.extend({ key: z.string() });

export const pageQuery = z.strictObject({
  limit: z.coerce
    .number('integer')
    .pipe(integer(1, 1000))
    .default(100)
    .describe('Maximum number of items on a page.'),
  after: z.string().default('').describe('Last id of the previous page.'),
});
export const keyQuery = pageQuery.extend({
  tenant: z.string().optional().describe('Only keys of this tenant.'),
});

const day = z.iso.date();
const usageGroup = z.enum(USAGE_GROUPS);
export const usageQuery = z.strictObject({
  from: day.optional().describe('First UTC day, inclusive. Default: 30 days before `to`.'),
  to: day.optional().describe('Last UTC day, inclusive. Default: today.'),
  tenant: z.string().optional().describe('Only this tenant.'),
  key: z.string().optional().describe('Only this key.'),
  model: z.string().optional().describe('Only this model.'),
  group_by: z
    .string()
    .default('day,model')
    .transform((text) => text.split(','))
    .pipe(z.array(usageGroup).min(1))
    .describe('Groups, comma-separated: day, tenant, model, key.'),
});
export const usageRow = z.object({
  object: z.literal('usage'),
  day: z.string().optional(),
  tenant: z.string().optional(),
  model: z.string().optional(),
  key: z.string().optional(),
  requests: z.int(),
  completed: z.int(),
  failed: z.int(),
  cancelled: z.int(),
  abandoned: z.int(),
  finish_stop: z.int(),
  finish_length: z.int(),
  prompt_tokens: z.int(),
  cached_tokens: z.int(),
  completion_tokens: z.int(),
  /** Milliseconds. */
  mean_latency_ms: z.number().nullable(),
  mean_first_token_ms: z.number().nullable(),
});
export const listOf = <T extends z.ZodType>(item: T) =>
  z.object({ object: z.literal('list'), data: z.array(item), has_more: z.boolean() });

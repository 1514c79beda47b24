import * as z from 'zod';
import { integer } from '../../shared/json-fields.ts';
import { dialectName, limits, scope, weight } from '../../shared/tenant.ts';
import { USAGE_GROUPS } from '../usage/usage-query.ts';
import { toSnakeCase } from './casing.ts';

/** What the admin API takes and gives, as its OpenAPI description shows it. */

const identifier = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/);
const displayName = z.string().trim().min(1).max(200);

const limitShape = toSnakeCase(limits.shape);

/** Limits that are set; null lifts the limit of the plan, an absent one follows it. */
const limitFields = z.strictObject(limitShape).partial();

const changeOf = (limit: z.ZodNullable<z.ZodInt>) => z.union([limit, z.literal('plan')]);
const limitChangeShape = Object.fromEntries(
  Object.entries(limitShape).map(([name, limit]) => [name, changeOf(limit)]),
) as Record<keyof typeof limitShape, ReturnType<typeof changeOf>>;

/** Limits to be changed; the others stay, and 'plan' follows the plan again. */
const limitChanges = z.strictObject(limitChangeShape).partial();

/** Unix seconds. */
const seconds = z.int();

export const planBody = z.strictObject({
  id: identifier,
  name: displayName,
  limits: limitFields.default({}),
  weight: weight.default(1),
});
export const planPatch = z.strictObject({ name: displayName, limits: limitFields, weight }).partial();
export const planObject = z.object({
  object: z.literal('plan'),
  id: z.string(),
  name: z.string(),
  limits: limitFields,
  weight: z.number(),
  created_at: seconds,
});

export const tenantBody = z.strictObject({
  id: identifier.optional(),
  name: displayName,
  plan: identifier.nullable().default(null),
  limits: limitFields.default({}),
  weight: weight.nullable().default(null),
  dialect: dialectName.default('openai'),
});
export const tenantPatch = z
  .strictObject({
    name: displayName,
    plan: identifier.nullable(),
    limits: limitChanges,
    weight: weight.nullable(),
    dialect: dialectName,
    suspended: z.boolean(),
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
  tenant: identifier,
  name: displayName,
  /** `admin` stands alone, and only for the operator's tenant. */
  scopes: z.array(scope).min(1).default(['completions', 'models']),
  models: z.array(z.string().min(1)).min(1).nullable().default(null),
  limits: limitFields.default({}),
  expires_at: seconds.nullable().default(null),
});
export const rotation = z.strictObject({
  /** How long the old key goes on working. */
  overlap_seconds: integer(0, 2_592_000).default(86_400),
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
/** The only answers that hold a whole key. */
export const newKeyObject = keyObject.extend({ key: z.string() });

export const pageQuery = z.strictObject({
  limit: z.coerce.number('integer').pipe(integer(1, 1000)).default(100),
  /** The last id of the page before. */
  after: z.string().default(''),
});
export const keyQuery = pageQuery.extend({ tenant: z.string().optional() });

const day = z.iso.date();
const usageGroup = z.enum(USAGE_GROUPS);
export const usageQuery = z.strictObject({
  /** First and last UTC day, both included. */
  from: day.optional(),
  to: day.optional(),
  tenant: z.string().optional(),
  key: z.string().optional(),
  model: z.string().optional(),
  /** Comma-separated: day, tenant, model, key. */
  group_by: z
    .string()
    .default('day,model')
    .transform((text) => text.split(','))
    .pipe(z.array(usageGroup).min(1)),
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

import * as z from 'zod';
import { metadata } from './batch.ts';
import { documented } from './documented.ts';
import { toSnakeCase } from './field-names.ts';
import { characters, integer, queryInteger, unixSeconds } from './json-fields.ts';
import { adminRole, dialectName, limits, scope, UNLIMITED, weight } from './tenant.ts';
import { USAGE_GROUPS, usageRow } from './usage.ts';

/** Plans, tenants, keys and usage: requests and responses of the admin API and of a tenant's account. */

const identifier = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/);
const displayName = characters(200, z.string().trim().min(1)).describe('Name for people.');

const limitShape = toSnakeCase(limits.shape);

const limitFields = z.strictObject(limitShape).partial();
const ownLimits = limitFields.describe(
  'Own limits. null removes the limit of the plan; an absent limit follows the plan.',
);

const changeOf = (limit: z.ZodNullable<z.ZodInt>) =>
  z.union([limit, z.literal('plan')]).describe(limit.description ?? '');
const limitChangeShape = Object.fromEntries(
  Object.entries(limitShape).map(([name, limit]) => [name, changeOf(limit)]),
) as Record<keyof typeof limitShape, ReturnType<typeof changeOf>>;

const limitChanges = z
  .strictObject(limitChangeShape)
  .partial()
  .describe("Limits to change. null removes a limit; 'plan' makes it follow the plan again.");

/** Unix seconds. */
const seconds = z.int();
const warning = z.string().optional().describe('What the limits of cost that were set do not limit.');
const createdAt = seconds.describe('Time of the creation in Unix seconds.');

const kindOf = <T extends string>(name: T) => z.literal(name).describe(`Always '${name}'.`);

const share = weight.describe('Share of an origin relative to other waiting tenants.');

export const planBody = z.strictObject({
  id: identifier.describe('Id of the plan: lower-case letters, digits and hyphens.'),
  name: displayName,
  limits: limitFields
    .default({})
    .describe('Limits of each tenant with this plan. An absent limit is no limit.'),
  weight: share.default(1),
});
planBody.register(documented, {
  example: { id: 'basic', name: 'Basic', limits: { requests_per_minute: 60, tokens_per_day: 1_000_000 } },
});
export const planPatch = z
  .strictObject({
    name: displayName,
    limits: limitFields.describe('Limits to change; the others stay. null removes a limit.'),
    weight: share,
  })
  .partial();
planPatch.register(documented, { example: { limits: { requests_per_minute: 120 } } });
export const planObject = z.object({
  object: kindOf('plan'),
  id: z.string().describe('Id of the plan.'),
  name: z.string().describe('Name for people.'),
  limits: limitFields.describe('Limits of each tenant with this plan. An absent limit is no limit.'),
  weight: z.number().describe('Share of an origin relative to other waiting tenants.'),
  created_at: createdAt,
  warning,
});

const planOfTenant = identifier.nullable().describe('Id of the plan; null = no plan.');
const ownWeight = weight.nullable().describe("Share of an origin; null = the plan's.");
const tenantDialect = dialectName.describe('Dialect of requests without the header x-dialect.');
const MAX_ALIASES = 100;
const modelName = characters(200, z.string().min(1));
const aliasMap = <T extends z.ZodType>(value: T) =>
  z
    .record(modelName, value)
    .refine((map) => Object.keys(map).length <= MAX_ALIASES, `expected at most ${MAX_ALIASES} names`);
const tenantFlags = {
  open_objects: z.boolean().describe('Default of the request field open_objects.'),
  any_key_order: z.boolean().describe('Default of the request field any_key_order.'),
  wait_for_tokens: z
    .boolean()
    .describe("Completions wait for tokens_per_minute. Otherwise they end with finish_reason 'length'."),
};

export const tenantBody = z.strictObject({
  id: identifier.optional().describe('Id of the tenant. If absent, the server creates one.'),
  name: displayName,
  plan: planOfTenant.default(null),
  limits: ownLimits.default({}),
  weight: ownWeight.default(null),
  dialect: tenantDialect.default('openai'),
  open_objects: tenantFlags.open_objects.default(false),
  any_key_order: tenantFlags.any_key_order.default(false),
  wait_for_tokens: tenantFlags.wait_for_tokens.default(false),
  aliases: aliasMap(modelName).default({}).describe('Names of the tenant for models: name to model.'),
});
tenantBody.register(documented, { example: { id: 'acme', name: 'Acme', plan: 'basic' } });
export const tenantPatch = z
  .strictObject({
    name: displayName,
    plan: planOfTenant,
    limits: limitChanges,
    weight: ownWeight,
    dialect: tenantDialect,
    ...tenantFlags,
    aliases: aliasMap(modelName.nullable()).describe('Names to change; null removes one.'),
    suspended: z.boolean().describe('Rejects all requests of the tenant.'),
  })
  .partial();
tenantPatch.register(documented, { example: { suspended: true } });
export const tenantObject = z.object({
  object: kindOf('tenant'),
  id: z.string().describe('Id of the tenant.'),
  name: z.string().describe('Name for people.'),
  plan: z.string().nullable().describe('Id of the plan; null = no plan.'),
  limits: ownLimits,
  weight: z.number().nullable().describe("Share of an origin; null = the plan's."),
  dialect: tenantDialect,
  ...tenantFlags,
  aliases: z.record(z.string(), z.string()).describe('Names of the tenant for models: name to model.'),
  suspended: z.boolean().describe('Whether all requests of the tenant are rejected.'),
  created_at: createdAt,
  warning,
});

const ADDRESS = z.union([z.cidrv4(), z.cidrv6(), z.ipv4(), z.ipv6()]);
const addressRange = z.string().refine((text) => ADDRESS.safeParse(text).success, {
  error: 'expected an IPv4 or IPv6 address, or a network such as 203.0.113.0/24',
});

export const keyBody = z.strictObject({
  tenant: identifier.describe('Id of the tenant.'),
  name: displayName,
  scopes: z
    .array(scope)
    .min(1)
    .default(['completions', 'models'])
    .describe("Endpoints that the key may use. 'admin' must be the only scope, for the tenant 'operator'."),
  role: adminRole
    .nullable()
    .default(null)
    .describe("Role of an admin key: 'owner', 'billing', 'read-only' or 'tenant:ID'; null = 'owner'."),
  models: z
    .array(z.string().min(1))
    .min(1)
    .nullable()
    .default(null)
    .describe('Models that the key may use; null = all.'),
  limits: limitFields.default({}).describe("Limits of this key, in addition to the tenant's."),
  expires_at: unixSeconds.nullable().default(null).describe('Unix seconds; null = never.'),
  allowed_addresses: z
    .array(addressRange)
    .min(1)
    .max(100)
    .nullable()
    .default(null)
    .describe(
      'Networks from which the key may be used, such as 203.0.113.0/24 or 2001:db8::/32; null = all.',
    ),
  metadata: metadata.nullable().default(null).describe(`${metadata.description} null = none.`),
});
keyBody.register(documented, {
  example: { tenant: 'acme', name: 'web server', scopes: ['completions', 'models'] },
});
export const keyPatch = z
  .strictObject({
    name: displayName,
    models: keyBody.shape.models.unwrap().describe('Models that the key may use; null = all.'),
    limits: limitFields.describe('Limits to change; the others stay. null removes a limit.'),
    expires_at: keyBody.shape.expires_at.unwrap().describe('Unix seconds; null = never.'),
    allowed_addresses: keyBody.shape.allowed_addresses
      .unwrap()
      .describe('Networks from which the key may be used; null = all.'),
    metadata: keyBody.shape.metadata.unwrap().describe('Your own pairs, which replace all earlier ones.'),
    disabled: z.boolean().describe('Rejects all requests of the key, and ends its streams within 2 s.'),
  })
  .partial();
keyPatch.register(documented, {
  name: 'KeyChange',
  example: { limits: { tokens_per_day: 100_000 }, disabled: false },
  examples: { disable: { disabled: true } },
});
export const rotation = z.strictObject({
  overlap_seconds: integer(0, 2_592_000)
    .default(86_400)
    .describe('Time for which the old key keeps working.'),
});
rotation.register(documented, {
  name: 'KeyRotation',
  example: { overlap_seconds: 3600 },
  examples: { hour: { overlap_seconds: 3600 } },
});
export const keyObject = z.object({
  object: kindOf('key'),
  id: z.string().describe('Id of the key; it is not the key.'),
  tenant: z.string().describe('Id of the tenant.'),
  name: z.string().describe('Name for people.'),
  scopes: z.array(scope).describe('Endpoints that the key may use.'),
  role: z.string().nullable().describe('Role of an admin key; null for all others.'),
  models: z.array(z.string()).nullable().describe('Models that the key may use; null = all.'),
  limits: limitFields.describe("Limits of this key, in addition to the tenant's."),
  created_at: createdAt,
  expires_at: seconds.nullable().describe('End of validity in Unix seconds; null = never.'),
  allowed_addresses: z
    .array(z.string())
    .nullable()
    .describe('Networks from which the key may be used; null = all.'),
  last_used_at: seconds
    .nullable()
    .describe('Beginning of the last UTC day with a request to a model, in Unix seconds; null = none.'),
  metadata: z.record(z.string(), z.string()).nullable().describe('Your own pairs; null = none.'),
  disabled: z.boolean().describe('Whether all requests of the key are rejected.'),
  revoked_at: seconds.nullable().describe('Time of the revocation in Unix seconds; null = not revoked.'),
  replaced_by: z.string().nullable().describe('Id of the key that replaces it; null = none.'),
  warning,
});

const KEY: z.infer<typeof keyObject> = {
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
  metadata: { team: 'search' },
  disabled: false,
  revoked_at: null,
  replaced_by: null,
};
keyObject.register(documented, { name: 'Key', example: KEY });

/** The only responses that contain a whole key. */
export const newKeyObject = keyObject.extend({
  key: z.string().describe('The key itself. No other response shows it.'),
  warning: z.string().optional().describe('Limits above what the account has left, or what has failed.'),
});
newKeyObject.register(documented, { name: 'NewKey', example: { ...KEY, key: 'sk-…' } });

const pageSize = (most: number, usual: number) =>
  queryInteger(1, most).default(usual).describe('Maximum number of items on a page.');
export const pageQuery = z.strictObject({
  limit: pageSize(1_000, 100),
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
  user: z.string().optional().describe('Only requests with this name of an end user in their field `user`.'),
  group_by: z
    .string()
    .default('day,model')
    .transform((text) => text.split(','))
    .pipe(z.array(usageGroup).min(1))
    .describe(
      'Groups, comma-separated: day, tenant, model, key, user. With user: only requests that name one.',
    ),
  limit: pageSize(10_000, 10_000),
  after: z.string().default('').describe('`next` of the previous page: the groups of its last row, as JSON.'),
});
export const listOf = <T extends z.ZodType>(item: T) =>
  z.object({
    object: kindOf('list'),
    data: z.array(item).describe('The items of this page.'),
    has_more: z.boolean().describe('Whether there is a next page; its `after` is the last id of this one.'),
  });
export const keyList = listOf(keyObject).register(documented, {
  name: 'KeyList',
  example: { object: 'list', data: [KEY], has_more: false },
});

/** A list of usage with its sums. */
export const usageResponse = listOf(usageRow).extend({
  next: z.string().nullable().describe('`after` of the next page; null = there is none.'),
  total: z.record(z.string(), z.int()).describe('Sums of the rows of all pages.'),
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
  example: { object: 'list', data: [USAGE], has_more: false, next: null, total: SUMS },
});

const tenantLimits = z.strictObject(limitShape);
/** Costs of ended requests; tokens also of running ones. */
const used = z.object({
  tokens_per_day: z.int().describe('Tokens of the UTC day, with those that are reserved.'),
  tokens_per_month: z.int().describe('Tokens of the UTC month, with those that are reserved.'),
  micros_per_day: z.int().describe('Cost of requests that began on the UTC day and have ended.'),
  micros_per_month: z.int().describe('Cost of requests that began in the UTC month and have ended.'),
});
const rest = (limit: string) => z.int().nullable().describe(`What is left of ${limit}; null = no limit.`);
const left = z.object({
  tokens_per_day: rest('tokens_per_day'),
  tokens_per_month: rest('tokens_per_month'),
  micros_per_day: rest('micros_per_day'),
  micros_per_month: rest('micros_per_month'),
});
const alert = z.object({
  key: z.string().nullable().describe('Id of the key; null = a limit of the account.'),
  limit: z.string().describe("Name of the limit; 'balance' = the prepaid balance."),
  period: z.string().describe('The UTC day or month; all that was paid in, for a balance.'),
  share_percent: z.int().describe('The share of the limit that was reached.'),
  limit_micros: z.int().describe('The limit in micro-units.'),
  spent_micros: z.int().describe('What was spent then.'),
  reached_at: seconds.describe('Unix seconds.'),
});

/** This key, with what the tenant may use. */
export const ownKey = keyObject
  .pick({
    object: true,
    id: true,
    name: true,
    scopes: true,
    models: true,
    expires_at: true,
    allowed_addresses: true,
    last_used_at: true,
  })
  .extend({
    limits: tenantLimits.describe('Limits of this key; null = no limit.'),
    used: used.describe('What this key has used.'),
    left: left.describe('Its limits without what is used.'),
    alerts: z.array(alert).describe('Shares of limits that were reached, newest first.'),
    tenant: z
      .object({
        id: z.string().describe('Id of the tenant.'),
        name: z.string().describe('Name for people.'),
        limits: tenantLimits.describe('Limits of all keys together; null = no limit.'),
        used: used.describe('What all keys have used.'),
        left: left.describe('These limits without what is used.'),
        wait_for_tokens: tenantFlags.wait_for_tokens,
        balance_micros: z.int().nullable().describe('What is left of the prepaid balance; null = none.'),
      })
      .describe('The account to which the key belongs.'),
  });

const { credit_micros: _, ...UNLIMITED_KEY } = toSnakeCase(UNLIMITED);
const LIMITS = {
  ...UNLIMITED_KEY,
  tokens_per_day: 100_000,
  micros_per_month: 100_000_000,
  user_requests_per_minute: 20,
};
const USED = {
  tokens_per_day: 1451,
  tokens_per_month: 9230,
  micros_per_day: 1208,
  micros_per_month: 80_000_312,
};
const LEFT = {
  tokens_per_day: 98_549,
  tokens_per_month: null,
  micros_per_day: null,
  micros_per_month: 19_999_688,
};
ownKey.register(documented, {
  name: 'OwnKey',
  example: {
    object: 'key',
    id: KEY.id,
    name: KEY.name,
    scopes: KEY.scopes,
    models: null,
    expires_at: null,
    allowed_addresses: null,
    last_used_at: KEY.last_used_at,
    limits: LIMITS,
    used: USED,
    left: LEFT,
    alerts: [
      {
        key: null,
        limit: 'micros_per_month',
        period: '2030-01',
        share_percent: 80,
        limit_micros: 100_000_000,
        spent_micros: 80_000_312,
        reached_at: 1_895_000_000,
      },
    ],
    tenant: {
      id: 'acme',
      name: 'Acme',
      limits: LIMITS,
      used: USED,
      left: LEFT,
      wait_for_tokens: false,
      balance_micros: null,
    },
  },
});

export const newKey = keyBody.omit({ tenant: true, role: true }).register(documented, {
  name: 'KeyRequest',
  examples: { limited: { name: 'web server', limits: { tokens_per_day: 100_000 } } },
});

export const ownUsageQuery = usageQuery.omit({ tenant: true }).extend({
  format: z.enum(['json', 'csv']).default('json').describe('Form of the answer.'),
});

import * as z from 'zod';
import { createdAt, displayName, identifier, limitFields, limitShape, warning } from './account-fields.ts';
import { documented } from './documented.ts';
import { always, characters } from './json-fields.ts';
import { dialectName, weight } from './tenant.ts';

/** Plans and tenants: requests and responses of the admin API. */

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
  object: always('plan'),
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
export const tenantFlags = {
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
  object: always('tenant'),
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

import * as z from 'zod';
import { limitShape, seconds } from './account-fields.ts';
import { documented } from './documented.ts';
import { toSnakeCase } from './field-names.ts';
import { KEY, keyObject } from './key-objects.ts';
import { UNLIMITED } from './tenant.ts';
import { tenantFlags } from './tenant-objects.ts';

/** What a key and its account may use and have used. */

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
    role: true,
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
    role: KEY.role,
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

import * as z from 'zod';
import {
  createdAt,
  displayName,
  identifier,
  limitFields,
  listOf,
  pageQuery,
  seconds,
  warning,
} from './account-fields.ts';
import { metadata } from './batch.ts';
import { documented } from './documented.ts';
import { always, integer, unixSeconds } from './json-fields.ts';
import { adminRole, scope } from './tenant.ts';

/** Keys: requests and responses of the admin API and of a tenant's account. */

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
  examples: { disable: { disabled: true } },
});
export const rotation = z.strictObject({
  overlap_seconds: integer(0, 2_592_000)
    .default(86_400)
    .describe('Time for which the old key keeps working.'),
});
rotation.register(documented, {
  name: 'KeyRotation',
  examples: { hour: { overlap_seconds: 3600 } },
});
export const keyObject = z.object({
  object: always('key'),
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

/** An example. */
export const KEY: z.infer<typeof keyObject> = {
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

export const keyQuery = pageQuery.extend({
  tenant: z.string().optional().describe('Only keys of this tenant.'),
});

export const keyList = listOf(keyObject).register(documented, {
  name: 'KeyList',
  example: { object: 'list', data: [KEY], has_more: false },
});

/** A list of usage with its sums. */
export const newKey = keyBody.omit({ tenant: true, role: true }).register(documented, {
  name: 'KeyRequest',
  examples: { limited: { name: 'web server', limits: { tokens_per_day: 100_000 } } },
});

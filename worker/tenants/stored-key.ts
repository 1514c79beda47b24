import {
  dialectName,
  limits,
  type Principal,
  type Scope,
  scope,
  UNLIMITED,
} from '@continuo/shared/tenant.ts';
import * as z from 'zod';

/**
 * Unset limits come from the plan; otherwise there is no limit. A Worker after a roll back ignores what it
 * does not know.
 */
const partialLimits = limits.partial().strip();
const scopes = z
  .array(z.string())
  .transform((names) => names.filter((name): name is Scope => scope.safeParse(name).success));

/** A key with its tenant, and the hash that a presented key must have. */
export interface StoredKey {
  readonly principal: Principal;
  /** Hex SHA-256 of the whole key. */
  readonly hash: string;
}

const json = <T>(schema: z.ZodType<T>) =>
  z
    .string()
    .transform((text): unknown => JSON.parse(text))
    .pipe(schema);

const row = z.object({
  id: z.string(),
  name: z.string(),
  hash: z.string(),
  scopes: json(scopes),
  role: z.string().nullable(),
  models: json(z.array(z.string())).nullable(),
  limits: json(partialLimits),
  expires_at: z.number().nullable(),
  allowed_addresses: json(z.array(z.string())).nullable(),
  revoked_at: z.number().nullable(),
  disabled: z.number(),
  tenant_id: z.string(),
  tenant_name: z.string(),
  tenant_limits: json(partialLimits).nullable(),
  tenant_weight: z.number().nullable(),
  dialect: dialectName.catch('openai'),
  open_objects: z.number(),
  any_key_order: z.number(),
  wait_for_tokens: z.number(),
  aliases: json(z.record(z.string(), z.string())),
  suspended: z.number(),
  credit_micros: z.number().nullable(),
  plan_limits: json(partialLimits).nullable(),
  plan_weight: z.number().nullable(),
});

const SELECT = `
  SELECT keys.id, keys.name, keys.hash, keys.scopes, keys.role, keys.models, keys.limits, keys.expires_at, keys.allowed_addresses,
    keys.revoked_at, keys.disabled,
    tenants.id AS tenant_id, tenants.name AS tenant_name, tenants.limits AS tenant_limits,
    tenants.weight AS tenant_weight, tenants.dialect, tenants.open_objects, tenants.any_key_order,
    tenants.wait_for_tokens, tenants.suspended, tenants.aliases, tenants.credit_micros,
    plans.limits AS plan_limits, plans.weight AS plan_weight
  FROM keys JOIN tenants ON tenants.id = keys.tenant_id LEFT JOIN plans ON plans.id = tenants.plan_id
  WHERE keys.id = ?`;

/** The answer of one database: the primary, or a copy that may lag. */
export interface KeyReading {
  /** Null if this database has no such key. */
  readonly key: StoredKey | null;
  readonly fromCopy: boolean;
}

/** Reads a key with its tenant and plan in one query, by default from the primary. */
export async function readKey(
  db: D1Database,
  id: string,
  session: D1SessionConstraint = 'first-primary',
): Promise<KeyReading> {
  const { results, meta } = await db.withSession(session).prepare(SELECT).bind(id).all();
  const [stored] = results;
  return { key: stored ? storedKey(row.parse(stored)) : null, fromCopy: meta.served_by_primary === false };
}

function storedKey(key: z.infer<typeof row>): StoredKey {
  return {
    hash: key.hash,
    principal: {
      tenant: {
        id: key.tenant_id,
        name: key.tenant_name,
        suspended: key.suspended !== 0,
        limits: {
          ...UNLIMITED,
          ...key.plan_limits,
          ...key.tenant_limits,
          creditMicros: key.credit_micros,
        } as typeof UNLIMITED,
        weight: key.tenant_weight ?? key.plan_weight ?? 1,
        dialect: key.dialect,
        openObjects: key.open_objects !== 0,
        anyKeyOrder: key.any_key_order !== 0,
        waitForTokens: key.wait_for_tokens !== 0,
        aliases: key.aliases,
      },
      key: {
        id: key.id,
        tenantId: key.tenant_id,
        name: key.name,
        scopes: key.scopes,
        role: key.role,
        models: key.models,
        expiresAt: key.expires_at,
        allowedAddresses: key.allowed_addresses,
        // A disabled key counts as revoked at the beginning of time.
        revokedAt: key.disabled === 0 ? key.revoked_at : 0,
        limits: { ...UNLIMITED, ...key.limits } as typeof UNLIMITED,
      },
    },
  };
}

import { toCamelCase } from '@continuo/shared/field-names.ts';
import type { SomeLimits, Tenant } from '@continuo/shared/tenant.ts';
import { type AuditEntry, runAudited } from './audit-log.ts';
import { changedLimits, type LimitChanges } from './plan-store.ts';
import { change, type Row } from './row.ts';

/** A stored tenant. Unset limits and weight come from its plan. */
export interface TenantRecord extends Omit<Tenant, 'limits' | 'weight'> {
  readonly planId: string | null;
  readonly limits: SomeLimits;
  readonly weight: number | null;
  /** Unix milliseconds. */
  readonly createdAt: number;
}

const FLAGS = ['suspended', 'openObjects', 'anyKeyOrder', 'waitForTokens'] as const;

/** The operator's tenant has no limits. */
type TenantRow = Omit<Row<TenantRecord>, 'limits'> & { limits: string | null };

const toTenant = (row: TenantRow): TenantRecord => ({
  ...toCamelCase(row),
  limits: JSON.parse(row.limits ?? '{}') as SomeLimits,
  aliases: JSON.parse(row.aliases) as Record<string, string>,
  openObjects: row.open_objects !== 0,
  anyKeyOrder: row.any_key_order !== 0,
  waitForTokens: row.wait_for_tokens !== 0,
  suspended: row.suspended !== 0,
});

export async function readTenant(db: D1Database, id: string): Promise<TenantRecord | null> {
  const row = await db.prepare('SELECT * FROM tenants WHERE id = ?').bind(id).first<TenantRow>();
  return row && toTenant(row);
}

export async function listTenants(db: D1Database, after: string, limit: number): Promise<TenantRecord[]> {
  const sql = 'SELECT * FROM tenants WHERE id > ? ORDER BY id LIMIT ?';
  return (await db.prepare(sql).bind(after, limit).all<TenantRow>()).results.map(toTenant);
}

/** The erasure of tenant ?1. */
const ERASURE = "SELECT 1 FROM audit WHERE tenant_id = ?1 AND action = 'eraseTenant'";

/** Returns false if the id is taken, or was before: what is kept of an erased tenant has its id. */
export async function insertTenant(
  db: D1Database,
  tenant: TenantRecord,
  entry: AuditEntry,
): Promise<boolean> {
  const { id, name, planId, limits, weight, dialect, aliases, createdAt } = tenant;
  const flags = FLAGS.map((flag) => Number(tenant[flag]));
  const insertion = db
    .prepare(`
      INSERT OR IGNORE INTO tenants (id, name, plan_id, limits, weight, dialect, suspended, open_objects, any_key_order,
        wait_for_tokens, created_at, aliases)
      SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12 WHERE NOT EXISTS (${ERASURE})`)
    .bind(
      ...[id, name, planId, JSON.stringify(limits), weight, dialect, ...flags, createdAt],
      JSON.stringify(aliases),
    );
  const [inserted] = await runAudited(db, [insertion], entry);
  return inserted!.meta.changes > 0;
}

type Changeable = 'name' | 'planId' | 'weight' | 'dialect' | (typeof FLAGS)[number];

/** Changes of a tenant. Absent fields stay. */
type TenantChanges = { readonly [K in Changeable]?: TenantRecord[K] | undefined } & {
  readonly limits?: LimitChanges | undefined;
  /** null removes a name. */
  readonly aliases?: Readonly<Record<string, string | null>> | undefined;
};

/** Changes only given fields, so concurrent changes stay. Returns null if there is no such tenant. */
export async function updateTenant(
  db: D1Database,
  id: string,
  changes: TenantChanges,
  entry: AuditEntry,
): Promise<TenantRecord | null> {
  const { name, planId, limits, weight, dialect } = changes;
  const flags = FLAGS.map((flag) => (changes[flag] === undefined ? null : Number(changes[flag])));
  const update = db
    .prepare(`
      UPDATE tenants SET name = COALESCE(?2, name), plan_id = IIF(?3, ?4, plan_id), limits = ${changedLimits('?5')},
        weight = IIF(?6, ?7, weight), dialect = COALESCE(?8, dialect), suspended = COALESCE(?9, suspended),
        open_objects = COALESCE(?10, open_objects), any_key_order = COALESCE(?11, any_key_order),
        wait_for_tokens = COALESCE(?12, wait_for_tokens), aliases = json_patch(aliases, ?13)
      WHERE id = ?1 RETURNING *`)
    .bind(
      ...[id, name ?? null, ...change(planId), JSON.stringify(limits ?? {}), ...change(weight)],
      ...[dialect ?? null, ...flags, JSON.stringify(changes.aliases ?? {})],
    );
  const [row] = (await runAudited<TenantRow>(db, [update], entry))[0]!.results;
  return row ? toTenant(row) : null;
}

/**
 * Deletes a tenant, its keys, and what the audit log says of it. A tenant that is erased already is erased
 * again.
 * @returns false if there is no such tenant, or it is not suspended
 */
export async function eraseTenant(db: D1Database, id: string, entry: AuditEntry): Promise<boolean> {
  const forget = 'UPDATE audit SET changes = NULL, address = NULL WHERE tenant_id = ?1';
  const isSuspended = 'EXISTS (SELECT 1 FROM tenants WHERE id = ?1 AND suspended)';
  const statements = [
    `${forget} AND ${isSuspended}`,
    `DELETE FROM keys WHERE tenant_id = ?1 AND ${isSuspended}`,
    `DELETE FROM credits WHERE tenant_id = ?1 AND ${isSuspended}`,
    'DELETE FROM tenants WHERE id = ?1 AND suspended',
  ].map((sql) => db.prepare(sql).bind(id));
  const results = await runAudited(db, statements, entry);
  if (results.at(-1)!.meta.changes > 0) return true;
  const erased = await db.prepare(ERASURE).bind(id).first();
  if (erased !== null) await runAudited(db, [db.prepare(forget).bind(id)], entry);
  return erased !== null;
}

/** Returns the tenants erased after this time, and whether their last erasure kept sums. */
export async function erasedTenants(
  db: D1Database,
  after: number,
): Promise<{ readonly id: string; readonly keepUsage: boolean }[]> {
  const { results } = await db
    .prepare(`
      SELECT tenant_id AS tenant, changes IS '{"usage":"keep"}' AS keep, MAX(id) FROM audit INDEXED BY audit_erasures
      WHERE action = 'eraseTenant' AND at > ? GROUP BY tenant_id`)
    .bind(after)
    .all<{ tenant: string; keep: number }>();
  return results.map(({ tenant: id, keep }) => ({ id, keepUsage: keep !== 0 }));
}

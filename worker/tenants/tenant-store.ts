import type { DialectName, ObjectDefaults, SomeLimits } from '@continuo/shared/tenant.ts';
import { type AuditEntry, runAudited } from './audit-log.ts';
import { changedLimits, type LimitChanges } from './plan-store.ts';

/** A stored tenant. Unset limits and weight come from its plan. */
export interface TenantRecord extends ObjectDefaults {
  readonly id: string;
  readonly name: string;
  readonly planId: string | null;
  readonly limits: SomeLimits;
  readonly weight: number | null;
  readonly dialect: DialectName;
  readonly suspended: boolean;
  /** Unix milliseconds. */
  readonly createdAt: number;
}

interface TenantRow {
  id: string;
  name: string;
  plan_id: string | null;
  limits: string | null;
  weight: number | null;
  dialect: DialectName;
  open_objects: number;
  any_key_order: number;
  suspended: number;
  created_at: number;
}

const toTenant = (row: TenantRow): TenantRecord => ({
  id: row.id,
  name: row.name,
  planId: row.plan_id,
  limits: JSON.parse(row.limits ?? '{}') as SomeLimits,
  weight: row.weight,
  dialect: row.dialect,
  openObjects: row.open_objects !== 0,
  anyKeyOrder: row.any_key_order !== 0,
  suspended: row.suspended !== 0,
  createdAt: row.created_at,
});

export async function readTenant(db: D1Database, id: string): Promise<TenantRecord | null> {
  const row = await db.prepare('SELECT * FROM tenants WHERE id = ?').bind(id).first<TenantRow>();
  return row && toTenant(row);
}

export async function listTenants(db: D1Database, after: string, limit: number): Promise<TenantRecord[]> {
  const sql = 'SELECT * FROM tenants WHERE id > ? ORDER BY id LIMIT ?';
  return (await db.prepare(sql).bind(after, limit).all<TenantRow>()).results.map(toTenant);
}

/** Returns false if the id is taken. */
export async function insertTenant(
  db: D1Database,
  tenant: TenantRecord,
  entry: AuditEntry,
): Promise<boolean> {
  const { id, name, planId, limits, weight, dialect, openObjects, anyKeyOrder, suspended, createdAt } =
    tenant;
  const flags = [openObjects, anyKeyOrder, suspended].map(Number);
  const insertion = db
    .prepare(`
      INSERT OR IGNORE INTO tenants (id, name, plan_id, limits, weight, dialect, open_objects, any_key_order,
        suspended, created_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
    .bind(id, name, planId, JSON.stringify(limits), weight, dialect, ...flags, createdAt);
  const [inserted] = await runAudited(db, [insertion], entry);
  return inserted!.meta.changes > 0;
}

type Changeable = 'name' | 'planId' | 'weight' | 'dialect' | 'suspended' | keyof ObjectDefaults;

/** Changes of a tenant. Absent fields stay. */
export type TenantChanges = { readonly [K in Changeable]?: TenantRecord[K] | undefined } & {
  readonly limits?: LimitChanges | undefined;
};

/** Changes only the given fields, so that concurrent changes are all kept. Returns null if there is no such tenant. */
export async function updateTenant(
  db: D1Database,
  id: string,
  changes: TenantChanges,
  entry: AuditEntry,
): Promise<TenantRecord | null> {
  const { name, planId, limits, weight, dialect } = changes;
  const flags = [changes.suspended, changes.openObjects, changes.anyKeyOrder];
  const update = db
    .prepare(`
      UPDATE tenants SET name = COALESCE(?2, name), plan_id = IIF(?3, ?4, plan_id), limits = ${changedLimits('?5')},
        weight = IIF(?6, ?7, weight), dialect = COALESCE(?8, dialect), suspended = COALESCE(?9, suspended),
        open_objects = COALESCE(?10, open_objects), any_key_order = COALESCE(?11, any_key_order)
      WHERE id = ?1 RETURNING *`)
    .bind(
      id,
      name ?? null,
      planId === undefined ? 0 : 1,
      planId ?? null,
      JSON.stringify(limits ?? {}),
      weight === undefined ? 0 : 1,
      weight ?? null,
      dialect ?? null,
      ...flags.map((flag) => (flag === undefined ? null : Number(flag))),
    );
  const [row] = (await runAudited<TenantRow>(db, [update], entry))[0]!.results;
  return row ? toTenant(row) : null;
}

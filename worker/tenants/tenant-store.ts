import type { DialectName, Limits } from '../../shared/tenant.ts';

/** A tenant's own record; what it leaves open comes from its plan. */
export interface TenantRecord {
  readonly id: string;
  readonly name: string;
  readonly planId: string | null;
  readonly limits: Partial<Limits>;
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
  suspended: number;
  created_at: number;
}

const toTenant = (row: TenantRow): TenantRecord => ({
  id: row.id,
  name: row.name,
  planId: row.plan_id,
  limits: JSON.parse(row.limits ?? '{}') as Partial<Limits>,
  weight: row.weight,
  dialect: row.dialect,
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

const changeable = (tenant: TenantRecord): unknown[] => [
  tenant.name,
  tenant.planId,
  JSON.stringify(tenant.limits),
  tenant.weight,
  tenant.dialect,
  tenant.suspended ? 1 : 0,
];

/** False when the id is taken. */
export async function insertTenant(db: D1Database, tenant: TenantRecord): Promise<boolean> {
  const { meta } = await db
    .prepare(`
      INSERT OR IGNORE INTO tenants (name, plan_id, limits, weight, dialect, suspended, id, created_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)
    .bind(...changeable(tenant), tenant.id, tenant.createdAt)
    .run();
  return meta.changes > 0;
}

export async function updateTenant(db: D1Database, tenant: TenantRecord): Promise<void> {
  await db
    .prepare(`
      UPDATE tenants SET name = ?, plan_id = ?, limits = ?, weight = ?, dialect = ?, suspended = ? WHERE id = ?`)
    .bind(...changeable(tenant), tenant.id)
    .run();
}

import { toCamelCase } from '@continuo/shared/field-names.ts';
import type { Limits, SomeLimits } from '@continuo/shared/tenant.ts';
import { type AuditEntry, runAudited } from './audit-log.ts';
import type { Row } from './row.ts';

/** Limits that several tenants share. */
export interface Plan {
  readonly id: string;
  readonly name: string;
  readonly limits: SomeLimits;
  readonly weight: number;
  /** Unix milliseconds. */
  readonly createdAt: number;
}

const toPlan = (row: Row<Plan>): Plan => ({
  ...toCamelCase(row),
  limits: JSON.parse(row.limits) as SomeLimits,
});

export async function readPlan(db: D1Database, id: string): Promise<Plan | null> {
  const row = await db.prepare('SELECT * FROM plans WHERE id = ?').bind(id).first<Row<Plan>>();
  return row && toPlan(row);
}

export async function listPlans(db: D1Database, after: string, limit: number): Promise<Plan[]> {
  const sql = 'SELECT * FROM plans WHERE id > ? ORDER BY id LIMIT ?';
  return (await db.prepare(sql).bind(after, limit).all<Row<Plan>>()).results.map(toPlan);
}

/** Returns false if the id is taken. */
export async function insertPlan(db: D1Database, plan: Plan, entry: AuditEntry): Promise<boolean> {
  const sql = 'INSERT OR IGNORE INTO plans (id, name, limits, weight, created_at) VALUES (?, ?, ?, ?, ?)';
  const values = [plan.id, plan.name, JSON.stringify(plan.limits), plan.weight, plan.createdAt];
  const [inserted] = await runAudited(db, [db.prepare(sql).bind(...values)], entry);
  return inserted!.meta.changes > 0;
}

/** Changes of a plan. Absent fields stay. */
type PlanChanges = { readonly [K in 'name' | 'limits' | 'weight']?: Plan[K] | undefined };

/** Changes only given fields, so concurrent changes stay. Returns null if there is no such plan. */
export async function updatePlan(
  db: D1Database,
  id: string,
  { name, limits, weight }: PlanChanges,
  entry: AuditEntry,
): Promise<Plan | null> {
  const update = db
    .prepare(`
      UPDATE plans SET name = COALESCE(?2, name), limits = ${changedLimits('?3')}, weight = COALESCE(?4, weight)
      WHERE id = ?1 RETURNING *`)
    .bind(id, name ?? null, JSON.stringify(limits ?? {}), weight ?? null);
  const [row] = (await runAudited<Row<Plan>>(db, [update], entry))[0]!.results;
  return row ? toPlan(row) : null;
}

/** Returns the removed plan; null if there is none, or a tenant has it. */
export async function removePlan(db: D1Database, id: string, entry: AuditEntry): Promise<Plan | null> {
  const removal = db
    .prepare(`
      DELETE FROM plans WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM tenants WHERE plan_id = ?1) RETURNING *`)
    .bind(id);
  const [row] = (await runAudited<Row<Plan>>(db, [removal], entry))[0]!.results;
  return row ? toPlan(row) : null;
}

/** Limits to change; the others stay. null = no limit, 'plan' = the plan's limit. */
export type LimitChanges = { readonly [K in keyof Limits]?: Limits[K] | 'plan' | undefined };

/**
 * Returns the SQL for the changed column `limits`. `parameter` is bound to the changes as JSON. Computed in
 * SQL, so that concurrent changes of different limits are all kept.
 */
export const changedLimits = (parameter: string): string => `(
  SELECT json_group_object(key, value) FROM (
    SELECT key, value FROM json_each(COALESCE(limits, '{}')) WHERE key NOT IN (SELECT key FROM json_each(${parameter}))
    UNION ALL SELECT key, value FROM json_each(${parameter}) WHERE value IS NOT 'plan'
  ))`;

import type { Limits } from '../../shared/tenant.ts';

/** A set of limits that many tenants share. */
export interface Plan {
  readonly id: string;
  readonly name: string;
  readonly limits: Partial<Limits>;
  readonly weight: number;
  /** Unix milliseconds. */
  readonly createdAt: number;
}

interface PlanRow {
  id: string;
  name: string;
  limits: string;
  weight: number;
  created_at: number;
}

const toPlan = (row: PlanRow): Plan => ({
  id: row.id,
  name: row.name,
  limits: JSON.parse(row.limits) as Partial<Limits>,
  weight: row.weight,
  createdAt: row.created_at,
});

export async function readPlan(db: D1Database, id: string): Promise<Plan | null> {
  const row = await db.prepare('SELECT * FROM plans WHERE id = ?').bind(id).first<PlanRow>();
  return row && toPlan(row);
}

export async function listPlans(db: D1Database, after: string, limit: number): Promise<Plan[]> {
  const sql = 'SELECT * FROM plans WHERE id > ? ORDER BY id LIMIT ?';
  return (await db.prepare(sql).bind(after, limit).all<PlanRow>()).results.map(toPlan);
}

/** False when the id is taken. */
export async function insertPlan(db: D1Database, plan: Plan): Promise<boolean> {
  const sql = 'INSERT OR IGNORE INTO plans (id, name, limits, weight, created_at) VALUES (?, ?, ?, ?, ?)';
  const values = [plan.id, plan.name, JSON.stringify(plan.limits), plan.weight, plan.createdAt];
  const { meta } = await db
    .prepare(sql)
    .bind(...values)
    .run();
  return meta.changes > 0;
}

export async function updatePlan(db: D1Database, plan: Plan): Promise<void> {
  await db
    .prepare('UPDATE plans SET name = ?, limits = ?, weight = ? WHERE id = ?')
    .bind(plan.name, JSON.stringify(plan.limits), plan.weight, plan.id)
    .run();
}

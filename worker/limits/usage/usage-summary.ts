import type { SummaryRow } from './tenant-ledger.ts';
import {
  ALL_SUMS,
  type UsagePage,
  type UsageQuestion,
  type UsageSums,
  usageStatements,
} from './usage-sums.ts';

/**
 * Sums of all tenants by day and model, in DB. Each tenant's object writes its own rows: absolute sums, so
 * that a report may arrive twice. One that arrives late has a lower number than the last one.
 */

const GUARD = 'COALESCE((SELECT number FROM usage_reports WHERE tenant_id = ?1), 0) <= ?2';
const COLUMNS = ['tenant_id', 'day', 'model', ...ALL_SUMS];

const PUT = `
  INSERT INTO usage_summary (${COLUMNS.join(', ')})
  SELECT ?1, ${COLUMNS.slice(1)
    .map((_, index) => `?${index + 3}`)
    .join(', ')} WHERE ${GUARD}
  ON CONFLICT (day, tenant_id, model) DO UPDATE SET ${ALL_SUMS.map((name) => `${name} = excluded.${name}`).join(', ')}`;

const REMOVE = `DELETE FROM usage_summary WHERE tenant_id = ?1 AND day = ?3 AND model = ?4 AND ${GUARD}`;

const ADVANCE = `
  INSERT INTO usage_reports (tenant_id, number) SELECT ?1, ?2 WHERE ${GUARD}
  ON CONFLICT (tenant_id) DO UPDATE SET number = excluded.number`;

/** Writes the changed rows of a tenant, in one transaction. @param number increases with every report */
export async function reportUsage(
  db: D1Database,
  tenantId: string,
  number: number,
  rows: readonly SummaryRow[],
): Promise<void> {
  const [put, remove, advance] = [PUT, REMOVE, ADVANCE].map((sql) => db.prepare(sql));
  const changes = rows.map(({ day, model, sums }) =>
    sums === null
      ? remove!.bind(tenantId, number, day, model)
      : put!.bind(tenantId, number, day, model, ...sums),
  );
  await db.batch([...changes, advance!.bind(tenantId, number)]);
}

/** Returns the sums of all tenants that a question asks for. It names no key and no end user. */
export async function querySummary(db: D1Database, question: UsageQuestion): Promise<UsagePage> {
  const columns = { day: 'day', tenant: 'tenant_id', model: 'model' };
  const { page, total } = usageStatements('usage_summary', columns, question);
  const [rows, all] = await db.batch([page, total].map(({ sql, values }) => db.prepare(sql).bind(...values)));
  return { rows: rows!.results as UsageSums[], total: all!.results[0] as Record<string, number> };
}

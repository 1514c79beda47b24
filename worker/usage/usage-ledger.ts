import { nameOf } from './reservation-id.ts';
import { ADD_SUMS, ALL_SUMS, SUM_TABLES, type SumTable } from './usage-query.ts';
import type { UsageRecord } from './usage-record.ts';

export interface NumberedRecord {
  /** Increases with every record of the tenant; never reused. */
  readonly sequence: number;
  readonly record: UsageRecord;
}

function upsert(table: SumTable): string {
  const key = SUM_TABLES[table];
  const columns = [...key, ...ALL_SUMS];
  return `
    INSERT INTO ${table} (${columns.join(', ')})
    SELECT ${columns.map((_, index) => `?${index + 1}`).join(', ')}
    WHERE COALESCE((SELECT sequence FROM usage_cursors WHERE tenant_id = ?1), 0) = ?${columns.length + 1}
    ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${ADD_SUMS}`;
}

const ADVANCE = `
  INSERT INTO usage_cursors (tenant_id, sequence)
  SELECT ?1, ?2 WHERE COALESCE((SELECT sequence FROM usage_cursors WHERE tenant_id = ?1), 0) = ?3
  ON CONFLICT (tenant_id) DO UPDATE SET sequence = excluded.sequence`;

/** Adds the records one by one; like the sums, only at the cursor. */
const KEEP = `
  INSERT INTO requests (tenant_id, request_id, sequence, started_at, record)
  SELECT ?1, value->>0, value->>1, value->>2, value->>3 FROM json_each(?2)
  WHERE COALESCE((SELECT sequence FROM usage_cursors WHERE tenant_id = ?1), 0) = ?3`;

/** The UTC day of a time, as YYYY-MM-DD. */
export const dayName = (at: number): string => new Date(at).toISOString().slice(0, 10);

const count = <T>(items: readonly T[], wanted: (item: T) => boolean): number => items.filter(wanted).length;
const sum = <T>(items: readonly T[], amount: (item: T) => number): number =>
  items.reduce((total, item) => total + amount(item), 0);

/** Returns the counters of one row of usage_daily, in the order of ALL_SUMS. */
function totals(records: readonly UsageRecord[]): number[] {
  const finishes = records.flatMap(({ finishReasons }) => finishReasons);
  return [
    records.length,
    ...(['completed', 'failed', 'cancelled', 'abandoned'] as const).map((status) =>
      count(records, (record) => record.status === status),
    ),
    ...(['stop', 'length'] as const).map((reason) => count(finishes, (finish) => finish === reason)),
    sum(records, ({ usage }) => usage.promptTokens),
    sum(records, ({ usage }) => usage.cachedTokens),
    sum(records, ({ usage }) => usage.completionTokens),
    // Records of older limiters have no cost.
    sum(records, ({ cost = 0 }) => cost),
    sum(records, ({ latencyMs }) => latencyMs),
    sum(records, ({ firstTokenMs }) => firstTokenMs ?? 0),
    count(records, ({ firstTokenMs }) => firstTokenMs !== null),
  ];
}

/** Adds the counters of a tenant's records to their rows. */
function additions(
  db: D1Database,
  table: SumTable,
  records: readonly UsageRecord[],
  cursor: number,
): D1PreparedStatement[] {
  const statement = db.prepare(upsert(table));
  const rows = Map.groupBy(records, (record) => {
    const { tenantId, startedAt, model, keyId, endUser } = record;
    const row = { tenant_id: tenantId, day: dayName(startedAt), model, key_id: keyId, end_user: endUser };
    return JSON.stringify(SUM_TABLES[table].map((column) => row[column]));
  });
  return [...rows].map(([row, all]) =>
    statement.bind(...(JSON.parse(row) as string[]), ...totals(all), cursor),
  );
}

/** Returns the sequence number up to which a tenant's records are in the ledger. */
export async function ledgerCursor(db: D1Database, tenantId: string): Promise<number> {
  const row = await db
    .prepare('SELECT sequence FROM usage_cursors WHERE tenant_id = ?')
    .bind(tenantId)
    .first<{ sequence: number }>();
  return row?.sequence ?? 0;
}

/**
 * Adds records that follow `cursor` to the ledger, in one transaction. Every statement requires that the
 * cursor is unchanged, so a batch that arrives twice or late counts once.
 * @param keepRequests also stores the records one by one
 */
export async function addToLedger(
  db: D1Database,
  tenantId: string,
  cursor: number,
  entries: readonly NumberedRecord[],
  keepRequests = true,
): Promise<void> {
  const last = entries.at(-1);
  if (!last) return;
  const records = entries.map(({ record }) => record);
  const named = records.filter(({ endUser }) => (endUser ?? null) !== null);
  const statements = [
    ...additions(db, 'usage_daily', records, cursor),
    ...additions(db, 'usage_users', named, cursor),
  ];
  const kept = entries.map(({ sequence, record }) => {
    return [nameOf(record.requestId), sequence, record.startedAt, JSON.stringify(record)];
  });
  if (keepRequests) statements.push(db.prepare(KEEP).bind(tenantId, JSON.stringify(kept), cursor));
  await db.batch([...statements, db.prepare(ADVANCE).bind(tenantId, last.sequence, cursor)]);
}

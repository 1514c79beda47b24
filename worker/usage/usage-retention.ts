import { dayName } from './usage-ledger.ts';
import { ADD_SUMS, ALL_SUMS, SUM_TABLES, type SumTable } from './usage-query.ts';

const DAY_MS = 86_400_000;
/** Days per run: a run stays short even if the first one finds years. */
const MAX_DAYS = 31;

const sums = ALL_SUMS.map((name) => `SUM(${name})`).join(', ');

/** Days before ?1 that are not the first of their month, oldest first. */
const oldDays = (table: SumTable): string => `
  SELECT DISTINCT day FROM ${table} WHERE day < ?1 AND substr(day, 9) <> '01' ORDER BY day LIMIT ${MAX_DAYS}`;

function addToMonth(table: SumTable): string {
  const key = SUM_TABLES[table];
  const rest = key.filter((column) => column !== 'day').join(', ');
  return `
    INSERT INTO ${table} (day, ${rest}, ${ALL_SUMS.join(', ')})
    SELECT substr(day, 1, 8) || '01', ${rest}, ${sums} FROM ${table} WHERE day = ?1 GROUP BY ${rest}
    ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${ADD_SUMS}`;
}

/**
 * Adds days older than `days` to the first day of their month, so that the ledger of a month stays exact and
 * grows no more. A day is moved in one transaction. At most 31 days per run.
 * @param now Unix milliseconds
 */
export async function rollUpUsage(db: D1Database, days: number, now: number): Promise<void> {
  const before = dayName(now - days * DAY_MS);
  for (const table of Object.keys(SUM_TABLES) as SumTable[]) {
    const { results } = await db.prepare(oldDays(table)).bind(before).all<{ day: string }>();
    for (const { day } of results) {
      await db.batch([
        db.prepare(addToMonth(table)).bind(day),
        db.prepare(`DELETE FROM ${table} WHERE day = ?`).bind(day),
      ]);
    }
  }
}

/** Rows per statement, so that each of them is short. */
const PRUNED_ROWS = 5_000;
const MAX_STATEMENTS = 200;

/** Requests arrive in the order of their ends, so the old ones have the lowest ids. */
const PRUNE = `
  DELETE FROM requests WHERE id < (SELECT MIN(id) FROM requests) + ${PRUNED_ROWS} AND started_at < ?`;

/** Deletes the records of requests that are older than `days`, at most a million per run. Their sums stay. */
export async function pruneRequests(db: D1Database, days: number, now: number): Promise<void> {
  for (let count = 0; count < MAX_STATEMENTS; count += 1) {
    const { meta } = await db
      .prepare(PRUNE)
      .bind(now - days * DAY_MS)
      .run();
    if (meta.changes === 0) return;
  }
}

const ADD_WITHOUT_KEYS = `
  INSERT INTO usage_daily (tenant_id, day, model, key_id, ${ALL_SUMS.join(', ')})
  SELECT tenant_id, substr(day, 1, 8) || '01', model, '', ${sums} FROM usage_daily
  WHERE tenant_id = ?1 AND key_id <> '' GROUP BY 1, 2, 3
  ON CONFLICT (tenant_id, day, model, key_id) DO UPDATE SET ${ADD_SUMS}`;

/**
 * Erases a tenant's usage. With `keepSums`, one row per month and model stays, without keys and end users.
 * The cursor stays, so that no late record counts twice.
 */
export async function eraseUsage(db: D1Database, tenantId: string, keepSums: boolean): Promise<void> {
  const rest = keepSums ? " AND key_id <> ''" : '';
  await db.batch([
    db.prepare('DELETE FROM requests WHERE tenant_id = ?').bind(tenantId),
    db.prepare('DELETE FROM usage_users WHERE tenant_id = ?').bind(tenantId),
    ...(keepSums ? [db.prepare(ADD_WITHOUT_KEYS).bind(tenantId)] : []),
    db.prepare(`DELETE FROM usage_daily WHERE tenant_id = ?${rest}`).bind(tenantId),
  ]);
}

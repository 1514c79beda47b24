import { toCamelCase } from '@continuo/shared/field-names.ts';
import { type AuditEntry, runAudited } from './audit-log.ts';
import type { Row } from './row.ts';

/** An entry of a tenant's prepaid balance. Entries are never changed. */
export interface Credit {
  /** Unique per tenant. An entry that is sent twice counts once. */
  readonly id: string;
  readonly tenantId: string;
  /** Micro-units of the currency; negative for a correction. */
  readonly micros: number;
  readonly note: string;
  /** Unix milliseconds. */
  readonly createdAt: number;
}

/** Lists a tenant's entries after an id. */
export async function listCredits(
  db: D1Database,
  tenantId: string,
  after: string,
  limit: number,
): Promise<Credit[]> {
  const sql = `
    SELECT * FROM credits WHERE tenant_id = ?1 AND sequence >
      COALESCE((SELECT sequence FROM credits WHERE tenant_id = ?1 AND id = ?2), 0)
    ORDER BY sequence LIMIT ?3`;
  return (await db.prepare(sql).bind(tenantId, after, limit).all<Row<Credit>>()).results.map(toCamelCase);
}

/** Returns what was paid in, and the time of the last entry; null if the tenant has no prepaid balance. */
export async function readCredit(
  db: D1Database,
  tenantId: string,
): Promise<{ readonly micros: number; readonly at: number } | null> {
  const row = await db
    .prepare('SELECT SUM(micros) AS micros, MAX(created_at) AS at FROM credits WHERE tenant_id = ?')
    .bind(tenantId)
    .first<{ micros: number | null; at: number }>();
  return row?.micros == null ? null : { micros: row.micros, at: row.at };
}

/**
 * Adds entries whose ids are new. Those that would take the sum beyond what a number can hold are left out.
 * @returns the stored entry of the last id; null if there is none
 */
export async function insertCredits(
  db: D1Database,
  tenantId: string,
  credits: readonly Omit<Credit, 'tenantId'>[],
  entry: AuditEntry,
): Promise<Credit | null> {
  const sum = 'SELECT SUM(micros) FROM credits WHERE tenant_id = ?1';
  const insert = db.prepare(`
    INSERT OR IGNORE INTO credits (tenant_id, id, micros, note, created_at) SELECT ?1, ?2, ?3, ?4, ?5
    WHERE ABS(COALESCE((${sum}), 0) + ?3) <= ${Number.MAX_SAFE_INTEGER}`);
  // An entry that was there before is not in the audit log again.
  const update = db
    .prepare(`UPDATE tenants SET credit_micros = (${sum}) WHERE id = ?1 AND changes() > 0`)
    .bind(tenantId);
  const inserts = credits.map(({ id, micros, note, createdAt }) =>
    insert.bind(tenantId, id, micros, note, createdAt),
  );
  await runAudited(db, [...inserts, update], entry);
  const stored = await db
    .prepare('SELECT * FROM credits WHERE tenant_id = ? AND id = ?')
    .bind(tenantId, credits.at(-1)!.id)
    .first<Row<Credit>>();
  return stored && toCamelCase(stored);
}

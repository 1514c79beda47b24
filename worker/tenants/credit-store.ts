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

/** Returns all that was paid in; null if the tenant has no prepaid balance. */
export async function readCredit(db: D1Database, tenantId: string): Promise<number | null> {
  const row = await db
    .prepare('SELECT credit_micros FROM tenants WHERE id = ?')
    .bind(tenantId)
    .first<{ credit_micros: number | null }>();
  return row?.credit_micros ?? null;
}

/** Adds entries whose ids are new, and returns the stored entry of the last id. */
export async function insertCredits(
  db: D1Database,
  tenantId: string,
  credits: readonly Omit<Credit, 'tenantId'>[],
  entry: AuditEntry,
): Promise<Credit> {
  const insert = db.prepare(
    'INSERT OR IGNORE INTO credits (tenant_id, id, micros, note, created_at) VALUES (?, ?, ?, ?, ?)',
  );
  const sum = '(SELECT SUM(micros) FROM credits WHERE tenant_id = ?1)';
  // An entry that was there before changes no sum, so it is not in the audit log again.
  const update = db
    .prepare(`UPDATE tenants SET credit_micros = ${sum} WHERE id = ?1 AND credit_micros IS NOT ${sum}`)
    .bind(tenantId);
  const inserts = credits.map(({ id, micros, note, createdAt }) =>
    insert.bind(tenantId, id, micros, note, createdAt),
  );
  await runAudited(db, [...inserts, update], entry);
  const stored = await db
    .prepare('SELECT * FROM credits WHERE tenant_id = ? AND id = ?')
    .bind(tenantId, credits.at(-1)!.id)
    .first<Row<Credit>>();
  return toCamelCase(stored!);
}

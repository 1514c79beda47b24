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

interface CreditRow {
  id: string;
  tenant_id: string;
  micros: number;
  note: string;
  created_at: number;
}

const toCredit = ({ id, tenant_id: tenantId, micros, note, created_at: createdAt }: CreditRow): Credit => ({
  ...{ id, tenantId, micros, note, createdAt },
});

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
  return (await db.prepare(sql).bind(tenantId, after, limit).all<CreditRow>()).results.map(toCredit);
}

/** Returns all that was paid in; null if the tenant has no prepaid balance. */
export async function readCredit(db: D1Database, tenantId: string): Promise<number | null> {
  const row = await db
    .prepare('SELECT credit_micros FROM tenants WHERE id = ?')
    .bind(tenantId)
    .first<{ credit_micros: number | null }>();
  return row?.credit_micros ?? null;
}

/** Adds entries whose ids are new, and returns the stored entry of the last id. One transaction. */
export async function insertCredits(
  db: D1Database,
  tenantId: string,
  entries: readonly Omit<Credit, 'tenantId'>[],
): Promise<Credit> {
  const insert = db.prepare(
    'INSERT OR IGNORE INTO credits (tenant_id, id, micros, note, created_at) VALUES (?, ?, ?, ?, ?)',
  );
  const last = entries.at(-1)!;
  const results = await db.batch<CreditRow>([
    ...entries.map(({ id, micros, note, createdAt }) => insert.bind(tenantId, id, micros, note, createdAt)),
    db
      .prepare(
        'UPDATE tenants SET credit_micros = (SELECT SUM(micros) FROM credits WHERE tenant_id = ?1) WHERE id = ?1',
      )
      .bind(tenantId),
    db.prepare('SELECT * FROM credits WHERE tenant_id = ? AND id = ?').bind(tenantId, last.id),
  ]);
  return toCredit(results.at(-1)!.results[0]!);
}

import type { Limits, Scope } from '../../shared/tenant.ts';

/** A key's record; times are Unix milliseconds. */
export interface KeyRecord {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  /** Hex SHA-256 of the whole key. */
  readonly hash: string;
  readonly scopes: readonly Scope[];
  readonly models: readonly string[] | null;
  readonly limits: Partial<Limits>;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  /** Id of the key that took its place. */
  readonly replacedBy: string | null;
}

interface KeyRow {
  id: string;
  tenant_id: string;
  name: string;
  hash: string;
  scopes: string;
  models: string | null;
  limits: string;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
  replaced_by: string | null;
}

const toKey = (row: KeyRow): KeyRecord => ({
  id: row.id,
  tenantId: row.tenant_id,
  name: row.name,
  hash: row.hash,
  scopes: JSON.parse(row.scopes) as Scope[],
  models: row.models === null ? null : (JSON.parse(row.models) as string[]),
  limits: JSON.parse(row.limits) as Partial<Limits>,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  revokedAt: row.revoked_at,
  replacedBy: row.replaced_by,
});

export async function readKeyRecord(db: D1Database, id: string): Promise<KeyRecord | null> {
  const row = await db.prepare('SELECT * FROM keys WHERE id = ?').bind(id).first<KeyRow>();
  return row && toKey(row);
}

/** Keys of one tenant, or of all. */
export async function listKeys(
  db: D1Database,
  tenantId: string | null,
  after: string,
  limit: number,
): Promise<KeyRecord[]> {
  const sql = 'SELECT * FROM keys WHERE id > ?1 AND (?2 IS NULL OR tenant_id = ?2) ORDER BY id LIMIT ?3';
  return (await db.prepare(sql).bind(after, tenantId, limit).all<KeyRow>()).results.map(toKey);
}

const insertion = (db: D1Database, key: KeyRecord): D1PreparedStatement =>
  db
    .prepare(`
      INSERT INTO keys (id, tenant_id, name, hash, scopes, models, limits, expires_at, created_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`)
    .bind(
      key.id,
      key.tenantId,
      key.name,
      key.hash,
      JSON.stringify(key.scopes),
      key.models === null ? null : JSON.stringify(key.models),
      JSON.stringify(key.limits),
      key.expiresAt,
      key.createdAt,
    );

export async function insertKey(db: D1Database, key: KeyRecord): Promise<void> {
  await insertion(db, key).run();
}

/** Puts `next` in the place of `old`, which ends at `endsAt`: both or neither. */
export async function replaceKey(
  db: D1Database,
  old: KeyRecord,
  next: KeyRecord,
  endsAt: number,
): Promise<void> {
  const end = db
    .prepare('UPDATE keys SET expires_at = ?, replaced_by = ? WHERE id = ?')
    .bind(endsAt, next.id, old.id);
  await db.batch([insertion(db, next), end]);
}

/** Revoking twice keeps the first time. */
export async function revokeKey(db: D1Database, id: string, at: number): Promise<void> {
  await db.prepare('UPDATE keys SET revoked_at = COALESCE(revoked_at, ?) WHERE id = ?').bind(at, id).run();
}

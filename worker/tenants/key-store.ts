import { toCamelCase } from '@continuo/shared/field-names.ts';
import type { ApiKey, Scope, SomeLimits } from '@continuo/shared/tenant.ts';
import { type AuditEntry, runAudited } from './audit-log.ts';
import { changedLimits } from './plan-store.ts';
import { change, type Row } from './row.ts';

/** A stored key. Times are Unix milliseconds. */
export interface KeyRecord extends Omit<ApiKey, 'limits'> {
  /** Hex SHA-256 of the whole key. */
  readonly hash: string;
  readonly limits: SomeLimits;
  readonly createdAt: number;
  /** The tenant's own pairs. */
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly disabled: boolean;
  /** Id of the key that replaces it; null if there is none. */
  readonly replacedBy: string | null;
}

const valueIn = <T>(json: string | null): T | null => (json === null ? null : (JSON.parse(json) as T));
const jsonOf = (value: object | null): string | null => (value === null ? null : JSON.stringify(value));

const toKey = (row: Row<KeyRecord>): KeyRecord => ({
  ...toCamelCase(row),
  scopes: JSON.parse(row.scopes) as Scope[],
  models: valueIn(row.models),
  limits: JSON.parse(row.limits) as SomeLimits,
  allowedAddresses: valueIn(row.allowed_addresses),
  metadata: valueIn(row.metadata),
  disabled: row.disabled !== 0,
});

export async function readKeyRecord(db: D1Database, id: string): Promise<KeyRecord | null> {
  const row = await db.prepare('SELECT * FROM keys WHERE id = ?').bind(id).first<Row<KeyRecord>>();
  return row && toKey(row);
}

/** Lists the keys of one tenant, or of all if `tenantId` is null. */
export async function listKeys(
  db: D1Database,
  tenantId: string | null,
  after: string,
  limit: number,
): Promise<KeyRecord[]> {
  const ofTenant = tenantId === null ? '' : 'tenant_id = ?3 AND';
  const sql = `SELECT * FROM keys WHERE ${ofTenant} id > ?1 ORDER BY id LIMIT ?2`;
  const values = tenantId === null ? [after, limit] : [after, limit, tenantId];
  const statement = db.prepare(sql).bind(...values);
  return (await statement.all<Row<KeyRecord>>()).results.map(toKey);
}

const IS_CURRENT = 'replaced_by IS NULL AND revoked_at IS NULL';

/** @param instead id of the key to replace; if that key is not current, nothing is inserted */
const insertion = (db: D1Database, key: KeyRecord, instead: string | null): D1PreparedStatement =>
  db
    .prepare(`
      INSERT INTO keys (id, tenant_id, name, hash, scopes, models, limits, expires_at, created_at, role,
        allowed_addresses, metadata)
      SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?11, ?12, ?13
      WHERE ?10 IS NULL OR EXISTS (SELECT 1 FROM keys WHERE id = ?10 AND ${IS_CURRENT})`)
    .bind(
      ...[key.id, key.tenantId, key.name, key.hash, JSON.stringify(key.scopes), jsonOf(key.models)],
      ...[JSON.stringify(key.limits), key.expiresAt, key.createdAt, instead, key.role],
      ...[jsonOf(key.allowedAddresses), jsonOf(key.metadata)],
    );

export async function insertKey(db: D1Database, key: KeyRecord, entry: AuditEntry): Promise<void> {
  await runAudited(db, [insertion(db, key, null)], entry);
}

/** Replaces `old`, which expires at `endsAt`, by `next`. False if `old` was replaced or revoked. */
export async function replaceKey(
  db: D1Database,
  old: KeyRecord,
  next: KeyRecord,
  endsAt: number,
  entry: AuditEntry,
): Promise<boolean> {
  const end = db
    .prepare(`UPDATE keys SET expires_at = ?, replaced_by = ? WHERE id = ? AND ${IS_CURRENT}`)
    .bind(endsAt, next.id, old.id);
  const [inserted] = await runAudited(db, [insertion(db, next, old.id), end], entry);
  return inserted!.meta.changes > 0;
}

/** Changes of a key. Absent fields stay. */
type KeyChanges = {
  readonly [K in 'name' | 'models' | 'expiresAt' | 'allowedAddresses' | 'metadata' | 'disabled']?:
    | KeyRecord[K]
    | undefined;
} & { readonly limits?: SomeLimits | undefined };

/** Changes only given fields, so concurrent changes stay. Returns null if there is no such key. */
export async function updateKey(
  db: D1Database,
  id: string,
  { name, models, limits, expiresAt, allowedAddresses, metadata, disabled }: KeyChanges,
  entry: AuditEntry,
): Promise<KeyRecord | null> {
  const update = db
    .prepare(`
      UPDATE keys SET name = COALESCE(?2, name), models = IIF(?3, ?4, models), limits = ${changedLimits('?5')},
        expires_at = IIF(?6, ?7, expires_at), disabled = COALESCE(?8, disabled),
        allowed_addresses = IIF(?9, ?10, allowed_addresses), metadata = IIF(?11, ?12, metadata)
      WHERE id = ?1 RETURNING *`)
    .bind(
      ...[id, name ?? null, ...change(models && jsonOf(models)), JSON.stringify(limits ?? {})],
      ...[...change(expiresAt), disabled === undefined ? null : Number(disabled)],
      ...[...change(allowedAddresses && jsonOf(allowedAddresses)), ...change(metadata && jsonOf(metadata))],
    );
  const [row] = (await runAudited<Row<KeyRecord>>(db, [update], entry))[0]!.results;
  return row ? toKey(row) : null;
}

/** Revokes a key. If it is revoked already, the first time stays. */
export async function revokeKey(db: D1Database, id: string, at: number, entry: AuditEntry): Promise<void> {
  const sql = 'UPDATE keys SET revoked_at = COALESCE(revoked_at, ?) WHERE id = ?';
  await runAudited(db, [db.prepare(sql).bind(at, id)], entry);
}

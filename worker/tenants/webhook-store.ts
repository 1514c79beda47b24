import { type AuditEntry, runAudited } from './audit-log.ts';

/** Returns the address that gets a tenant's events; null = none. */
export async function readWebhook(db: D1Database, tenantId: string): Promise<string | null> {
  const row = await db
    .prepare('SELECT webhook_url FROM tenants WHERE id = ?')
    .bind(tenantId)
    .first<{ webhook_url: string | null }>();
  return row?.webhook_url ?? null;
}

/** Null removes the address. */
export async function setWebhook(
  db: D1Database,
  tenantId: string,
  url: string | null,
  entry: AuditEntry,
): Promise<void> {
  const update = db.prepare('UPDATE tenants SET webhook_url = ? WHERE id = ?').bind(url, tenantId);
  await runAudited(db, [update], entry);
}

/** Returns the address that gets a tenant's events; null = none. */
export async function readWebhook(db: D1Database, tenantId: string): Promise<string | null> {
  const row = await db
    .prepare('SELECT webhook_url FROM tenants WHERE id = ?')
    .bind(tenantId)
    .first<{ webhook_url: string | null }>();
  return row?.webhook_url ?? null;
}

/** Null removes the address. */
export async function setWebhook(db: D1Database, tenantId: string, url: string | null): Promise<void> {
  await db.prepare('UPDATE tenants SET webhook_url = ? WHERE id = ?').bind(url, tenantId).run();
}

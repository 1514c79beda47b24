import { askTenant } from '@continuo/limits/limiter-client.ts';
import { settleAll } from '@continuo/shared/retry.ts';
import type { Env } from '../env/env.ts';
import { afterAlone } from '../timers/request-timers.ts';

/** A run of the daily work may call so many objects. */
const TENANTS_PER_RUN = 500;

/**
 * Lets the objects of tenants take over their ledgers of releases up to 0.2.0 that have had no request since
 * the upgrade, so that the summary has them, too.
 */
export async function moveUsage(env: Env): Promise<void> {
  const { DB, USAGE_DB } = env;
  if (!USAGE_DB) return;
  const idsIn = async (db: D1Database, table: string) =>
    (await db.prepare(`SELECT tenant_id FROM ${table}`).raw<[string]>()).map(([id]) => id);
  const reported = new Set(await idsIn(DB, 'usage_reports'));
  const waiting = (await idsIn(USAGE_DB, 'usage_cursors')).filter((id) => !reported.has(id));
  const context = { env, timers: { after: afterAlone } };
  await settleAll(
    waiting
      .slice(0, TENANTS_PER_RUN)
      .map((tenantId) => askTenant(context, tenantId, { kind: 'move', tenantId })),
  );
}

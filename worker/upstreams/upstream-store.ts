import { type AuditEntry, runAudited } from '../tenants/audit-log.ts';
import type { UpstreamConfig } from './upstream-config.ts';

/** An upstream in the database. */
export interface StoredUpstream {
  readonly name: string;
  /** As in the variable UPSTREAMS, as JSON. A newer release may have written it. */
  readonly config: string;
  /** Unix milliseconds; null = it gets requests. */
  readonly removedAt: number | null;
}

/**
 * Removed upstreams are listed for this long: their requests end within 10 minutes, and limiters ask for what
 * these have used for 10 more.
 */
const REMOVED_MS = 20 * 60_000;

/** Returns the form in which the database has an upstream. */
export const storedForm = (config: UpstreamConfig): StoredUpstream => ({
  name: config.name,
  config: JSON.stringify(config),
  removedAt: null,
});

/** Reads all upstreams, by default from the primary. Without any that gets requests, the variable counts. */
export async function readUpstreams(
  db: D1Database,
  now: number,
  session: D1SessionConstraint = 'first-primary',
): Promise<StoredUpstream[]> {
  const { results } = await db
    .withSession(session)
    .prepare(`
      SELECT name, config, removed_at AS removedAt FROM upstreams
      WHERE removed_at IS NULL OR removed_at > ? ORDER BY name`)
    .bind(now - REMOVED_MS)
    .all<StoredUpstream>();
  return results;
}

/** The first change copies the list of the variable, so that it changes what is in effect. */
const copyOf = (db: D1Database, variable: readonly StoredUpstream[]): D1PreparedStatement =>
  db
    .prepare(`
      INSERT INTO upstreams (name, config)
      SELECT value ->> 'name', value ->> 'config' FROM json_each(?)
      WHERE NOT EXISTS (SELECT 1 FROM upstreams WHERE removed_at IS NULL)
      ON CONFLICT (name) DO UPDATE SET config = excluded.config, removed_at = NULL`)
    .bind(JSON.stringify(variable));

/** Adds or replaces an upstream. @param variable the upstreams of the variable */
export async function setUpstream(
  db: D1Database,
  variable: readonly StoredUpstream[],
  { name, config }: StoredUpstream,
  entry: AuditEntry,
): Promise<void> {
  const set = db
    .prepare(`
      INSERT INTO upstreams (name, config) VALUES (?, ?)
      ON CONFLICT (name) DO UPDATE SET config = excluded.config, removed_at = NULL`)
    .bind(name, config);
  await runAudited(db, [copyOf(db, variable), set], entry);
}

/** Removes an upstream. False if it is the last one, or was removed. */
export async function removeUpstream(
  db: D1Database,
  variable: readonly StoredUpstream[],
  name: string,
  entry: AuditEntry,
): Promise<boolean> {
  const old = db.prepare('DELETE FROM upstreams WHERE removed_at <= ?').bind(entry.at - REMOVED_MS);
  const remove = db
    .prepare(`
      UPDATE upstreams SET removed_at = ?2 WHERE name = ?1 AND removed_at IS NULL
        AND (SELECT COUNT(*) FROM upstreams WHERE removed_at IS NULL) > 1`)
    .bind(name, entry.at);
  const results = await runAudited(db, [copyOf(db, variable), old, remove], entry);
  return results[2]!.meta.changes > 0;
}

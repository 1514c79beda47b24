import { toCamelCase } from '@continuo/shared/field-names.ts';
import type { Row } from './row.ts';

/** The audit log: one entry per change of a plan, tenant or key, which is never changed itself. */

export interface AuditEntry {
  /** Unix milliseconds. */
  readonly at: number;
  /** Id of the key that makes the change. */
  readonly actor: string;
  readonly actorTenant: string;
  /** Network address of the caller. */
  readonly address: string | null;
  readonly requestId: string;
  readonly action: string;
  /** Id of the changed record. */
  readonly target: string;
  /** The tenant that it concerns; null = none. */
  readonly tenantId: string | null;
  /** The new values. */
  readonly changes: object | null;
}

export type NumberedEntry = AuditEntry & { readonly id: number };

const isSecret = (name: string): boolean => /secret|password/.test(name);

/** Returns the values as JSON, without secrets. */
const shown = (changes: AuditEntry['changes']): string =>
  JSON.stringify(changes, (name, value: unknown) => (isSecret(name) ? '(secret)' : value));

/** @param condition SQL; the entry is inserted only if it is true */
const insertion = (db: D1Database, entry: AuditEntry, condition: string): D1PreparedStatement =>
  db
    .prepare(`
      INSERT INTO audit (at, actor, actor_tenant, address, request_id, action, target, tenant_id, changes)
      SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE ${condition}`)
    .bind(
      ...[entry.at, entry.actor, entry.actorTenant, entry.address, entry.requestId],
      ...[entry.action, entry.target, entry.tenantId, shown(entry.changes)],
    );

/**
 * Runs statements and adds the entry, in one transaction. If the last statement changes nothing, there is no
 * entry. Without statements, `changes()` would be the number of another transaction.
 */
export const runAudited = <Row>(
  db: D1Database,
  statements: readonly D1PreparedStatement[],
  entry: AuditEntry,
): Promise<D1Result<Row>[]> =>
  db.batch<Row>([...statements, insertion(db, entry, statements.length === 0 ? 'true' : 'changes() > 0')]);

interface AuditFilter {
  /** Unix milliseconds; `to` is exclusive. */
  readonly from: number;
  readonly to: number;
  readonly tenantId: string | null;
  readonly actor: string | null;
  readonly action: string | null;
  /** Part of the target or of the new values; ASCII letters of either case. */
  readonly search: string | null;
}

/** Returns entries from new to old, beginning before the entry `before`. */
export async function listEntries(
  db: D1Database,
  { from, to, search, ...only }: AuditFilter,
  before: number,
  limit: number,
): Promise<NumberedEntry[]> {
  const columns = { tenantId: 'tenant_id', actor: 'actor', action: 'action' } as const;
  // Only given filters are in the statement, so that SQLite can use an index.
  const wanted = (['tenantId', 'actor', 'action'] as const).filter((name) => only[name] !== null);
  const conditions = wanted.map((name) => `AND ${columns[name]} = ?`);
  // As lower() of SQLite.
  const texts = search === null ? [] : [search.replace(/[A-Z]+/g, (part) => part.toLowerCase())];
  if (search !== null)
    conditions.push(`AND instr(lower(target || char(10) || COALESCE(changes, '')), ?) > 0`);
  const { results } = await db
    .prepare(`
      SELECT * FROM audit WHERE id < ? AND at >= ? AND at < ? ${conditions.join(' ')} ORDER BY id DESC LIMIT ?`)
    .bind(before, from, to, ...wanted.map((name) => only[name]), ...texts, limit)
    .all<Row<NumberedEntry>>();
  return results.map((row) => ({
    ...toCamelCase(row),
    changes: row.changes === null ? null : (JSON.parse(row.changes) as object),
  }));
}

import type { UsageGroup } from '@continuo/shared/usage.ts';
import { keptName } from './reservation-id.ts';
import type { UsageRecord } from './usage-record.ts';

/** Queries on the usage ledger. */

export interface UsageFilter {
  /** First and last UTC day, YYYY-MM-DD, both inclusive. */
  readonly from: string;
  readonly to: string;
  readonly tenantId: string | null;
  readonly keyId: string | null;
  readonly model: string | null;
  /** Hash of an end user's name. */
  readonly endUser: string | null;
}

/** The tables of sums, with the columns that name a row. The second has only requests with an end user. */
export const SUM_TABLES = {
  usage_daily: ['tenant_id', 'day', 'model', 'key_id'],
  usage_users: ['tenant_id', 'day', 'model', 'key_id', 'end_user'],
} as const;
export type SumTable = keyof typeof SUM_TABLES;

const COLUMNS: Readonly<Record<UsageGroup, string>> = {
  day: 'day',
  tenant: 'tenant_id',
  model: 'model',
  key: 'key_id',
  user: 'end_user',
};

const FILTERED = { tenantId: 'tenant_id', keyId: 'key_id', model: 'model', endUser: 'end_user' } as const;

/** Columns that the admin API shows as sums. */
export const SUMS = [
  'requests',
  'completed',
  'failed',
  'cancelled',
  'abandoned',
  'finish_stop',
  'finish_length',
  'prompt_tokens',
  'cached_tokens',
  'completion_tokens',
  'cost_micros',
] as const;

/** Columns that the admin API shows as means: milliseconds, and the number of requests with a first token. */
const SUMS_FOR_MEANS = ['latency_ms', 'first_token_ms', 'first_tokens'] as const;

/** All counters of a row. */
export const ALL_SUMS = [...SUMS, ...SUMS_FOR_MEANS] as const;

/** The assignments of an upsert that adds the counters of two rows. */
export const ADD_SUMS = ALL_SUMS.map((name) => `${name} = ${name} + excluded.${name}`).join(', ');

/** Sums of one group, with the values of the columns that were grouped by. */
export type UsageSums = Partial<Record<UsageGroup, string>> &
  Record<(typeof SUMS)[number] | (typeof SUMS_FOR_MEANS)[number], number>;

const sumsOf = (names: readonly string[]): string =>
  names.map((name) => `COALESCE(SUM(${name}), 0) AS ${name}`).join(', ');

/**
 * Returns the sums of each group in their order, and the sums of all groups.
 * @param after values of the group before the first one; none = from the first
 * @param limit of the groups
 */
export async function queryUsage(
  db: D1Database,
  filter: UsageFilter,
  groups: readonly UsageGroup[],
  after: readonly string[] = [],
  limit = 10_000,
): Promise<{ readonly rows: UsageSums[]; readonly total: Record<string, number> }> {
  const selected = groups.map((group) => `${COLUMNS[group]} AS "${group}"`).join(', ');
  const columns = groups.map((group) => COLUMNS[group]).join(', ');
  // Only given filters are in the statement, so that SQLite can use an index.
  const wanted = (Object.keys(FILTERED) as (keyof typeof FILTERED)[]).filter((name) => filter[name] !== null);
  const table = groups.includes('user') || filter.endUser !== null ? 'usage_users' : 'usage_daily';
  const conditions = wanted.map((name) => `AND ${FILTERED[name]} = ?`).join(' ');
  const from = `FROM ${table} WHERE day BETWEEN ? AND ? ${conditions}`;
  const values = [filter.from, filter.to, ...wanted.map((name) => filter[name])];
  const later = after.length === 0 ? '' : `AND (${columns}) > (${after.map(() => '?').join(', ')})`;
  const [page, all] = await db.batch([
    db
      .prepare(`
        SELECT ${selected}, ${sumsOf(ALL_SUMS)} ${from} ${later}
        GROUP BY ${columns} ORDER BY ${columns} LIMIT ?`)
      .bind(...values, ...after, limit),
    db.prepare(`SELECT ${sumsOf(SUMS)} ${from}`).bind(...values),
  ]);
  return { rows: page!.results as UsageSums[], total: all!.results[0] as Record<string, number> };
}

/** Returns the record of a tenant's request, the last one of several with this id; null if there is none. */
export async function readRequest(db: D1Database, tenantId: string, id: string): Promise<UsageRecord | null> {
  const sql =
    'SELECT record FROM requests WHERE tenant_id = ? AND request_id = ? ORDER BY sequence DESC LIMIT 1';
  const row = await db.prepare(sql).bind(tenantId, keptName(id)).first<{ record: string }>();
  return row && (JSON.parse(row.record) as UsageRecord);
}

/** Returns the last UTC day on which each of these keys was used; a key without use is missing. */
export async function lastUses(
  db: D1Database,
  keyIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { results } = await db
    .prepare(`
      SELECT value AS id, (SELECT MAX(day) FROM usage_daily WHERE key_id = value) AS day FROM json_each(?)`)
    .bind(JSON.stringify(keyIds))
    .all<{ id: string; day: string | null }>();
  return new Map(results.flatMap(({ id, day }) => (day === null ? [] : [[id, day]])));
}

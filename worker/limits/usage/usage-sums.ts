import type { UsageGroup } from '@continuo/shared/usage.ts';
import type { UsageRecord } from './usage-record.ts';

/** Sums of usage records by day, model, key and end user, and the SQL that asks for them. Pure. */

/** The counters that are shown as sums, and what a record adds to each. */
const SHOWN = {
  requests: () => 1,
  completed: ({ status }) => Number(status === 'completed'),
  failed: ({ status }) => Number(status === 'failed'),
  cancelled: ({ status }) => Number(status === 'cancelled'),
  abandoned: ({ status }) => Number(status === 'abandoned'),
  finish_stop: ({ finishReasons }) => finishReasons.filter((reason) => reason === 'stop').length,
  finish_length: ({ finishReasons }) => finishReasons.filter((reason) => reason === 'length').length,
  prompt_tokens: ({ usage }) => usage.promptTokens,
  cached_tokens: ({ usage }) => usage.cachedTokens,
  completion_tokens: ({ usage }) => usage.completionTokens,
  cost_micros: ({ cost }) => cost,
} as const satisfies Record<string, Counter>;
type Counter = (record: UsageRecord) => number;

/** With those that are shown as means: milliseconds, and the number of requests with a first token. */
const COUNTERS = {
  ...SHOWN,
  latency_ms: ({ latencyMs }) => latencyMs,
  first_token_ms: ({ firstTokenMs }) => firstTokenMs ?? 0,
  first_tokens: ({ firstTokenMs }) => Number(firstTokenMs !== null),
} as const satisfies Record<string, Counter>;

const SUMS = Object.keys(SHOWN) as (keyof typeof SHOWN)[];
/** The names of all counters of a row. */
export const ALL_SUMS = Object.keys(COUNTERS) as (keyof typeof COUNTERS)[];

/** Sums of one group, with the values of the columns that were grouped by. */
export type UsageSums = Partial<Record<UsageGroup, string>> & Counters;
export type Counters = Readonly<Record<keyof typeof COUNTERS, number>>;

/** Sums of the groups of a page, and of all groups. */
export interface UsagePage {
  readonly rows: UsageSums[];
  readonly total: Record<string, number>;
}

/** The assignments of an upsert that adds the counters of two rows. */
export const ADD_SUMS = ALL_SUMS.map((name) => `${name} = ${name} + excluded.${name}`).join(', ');

/** The sums of rows, as columns of a query. */
export const sumsOf = (names: readonly string[]): string =>
  names.map((name) => `COALESCE(SUM(${name}), 0) AS ${name}`).join(', ');

export const DAY_MS = 86_400_000;

/** The UTC day of a time, as YYYY-MM-DD. */
export const dayName = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** The first day of a day's month, under which old days are kept. */
export const monthOf = (day: string): string => `${day.slice(0, 8)}01`;

/** Returns the sums of all groups. */
export const totalOf = (rows: readonly UsageSums[]): UsagePage['total'] =>
  Object.fromEntries(SUMS.map((name) => [name, rows.reduce((total, row) => total + row[name], 0)]));

/** Returns the counters of these records. */
export const countersOf = (records: readonly UsageRecord[]): Counters =>
  Object.fromEntries(
    ALL_SUMS.map((name) => [name, records.reduce((total, record) => total + COUNTERS[name](record), 0)]),
  ) as Counters;

/** What a query of usage asks for. */
export interface UsageQuestion {
  /** First and last UTC day, YYYY-MM-DD, both inclusive. */
  readonly from: string;
  readonly to: string;
  readonly keyId: string | null;
  readonly model: string | null;
  /** Hash of an end user's name. */
  readonly endUser: string | null;
  readonly groups: readonly UsageGroup[];
  /** Values of the group before the first one; none = from the first. */
  readonly after: readonly string[];
  /** Of the groups. */
  readonly limit: number;
}

const FILTERS = { keyId: 'key_id', model: 'model', endUser: 'end_user' } as const;

interface Statement {
  readonly sql: string;
  readonly values: readonly (string | number)[];
}

/**
 * Returns the statements for the groups of a page in their order, and for the sums of all groups.
 * @param columns the SQL of each group
 */
export function usageStatements(
  table: string,
  columns: Readonly<Partial<Record<UsageGroup, string>>>,
  { from, to, groups, after, limit, ...filter }: UsageQuestion,
): { readonly page: Statement; readonly total: Statement } {
  const listed = groups.map((group) => columns[group]).join(', ');
  const selected = groups.map((group) => `${columns[group]} AS "${group}"`).join(', ');
  // Only given filters are in the statement, so that SQLite can use an index.
  const wanted = (Object.keys(FILTERS) as (keyof typeof FILTERS)[]).filter((name) => filter[name] !== null);
  const conditions = wanted.map((name) => `AND ${FILTERS[name]} = ?`).join(' ');
  const source = `FROM ${table} WHERE day BETWEEN ? AND ? ${conditions}`;
  const values = [from, to, ...wanted.map((name) => filter[name]!)];
  const later = after.length === 0 ? '' : `AND (${listed}) > (${after.map(() => '?').join(', ')})`;
  return {
    page: {
      sql: `SELECT ${selected}, ${sumsOf(ALL_SUMS)} ${source} ${later} GROUP BY ${listed} ORDER BY ${listed} LIMIT ?`,
      values: [...values, ...after, limit],
    },
    total: { sql: `SELECT ${sumsOf(SUMS)} ${source}`, values },
  };
}

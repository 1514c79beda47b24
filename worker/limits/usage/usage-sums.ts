import type { UsageGroup } from '@continuo/shared/usage.ts';
import type { UsageRecord } from './usage-record.ts';

/** Sums of usage records by day, model, key and end user, and the SQL that asks for them. Pure. */

/** Columns that are shown as sums. */
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

/** Columns that are shown as means: milliseconds, and the number of requests with a first token. */
const SUMS_FOR_MEANS = ['latency_ms', 'first_token_ms', 'first_tokens'] as const;

/** All counters of a row. */
export const ALL_SUMS = [...SUMS, ...SUMS_FOR_MEANS] as const;

/** Sums of one group, with the values of the columns that were grouped by. */
export type UsageSums = Partial<Record<UsageGroup, string>> & Record<(typeof ALL_SUMS)[number], number>;

/** Sums of the groups of a page, and of all groups. */
export interface UsagePage {
  readonly rows: UsageSums[];
  readonly total: Record<string, number>;
}

/** The assignments of an upsert that adds the counters of two rows. */
export const ADD_SUMS = ALL_SUMS.map((name) => `${name} = ${name} + excluded.${name}`).join(', ');

/** The definitions of the counters in a table. */
export const SUM_COLUMNS = ALL_SUMS.map((name) => `${name} INTEGER NOT NULL`).join(', ');

/** The sums of rows, as columns of a query. */
export const sumsOf = (names: readonly string[]): string =>
  names.map((name) => `COALESCE(SUM(${name}), 0) AS ${name}`).join(', ');

export const DAY_MS = 86_400_000;

/** The UTC day of a time, as YYYY-MM-DD. */
export const dayName = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** The first day of a day's month, under which old days are kept. */
export const monthOf = (day: string): string => `${day.slice(0, 8)}01`;

const count = <T>(items: readonly T[], wanted: (item: T) => boolean): number => items.filter(wanted).length;
const sum = <T>(items: readonly T[], amount: (item: T) => number): number =>
  items.reduce((total, item) => total + amount(item), 0);

/** Returns the sums of all groups. */
export const totalOf = (rows: readonly UsageSums[]): UsagePage['total'] =>
  Object.fromEntries(SUMS.map((name) => [name, sum(rows, (row) => row[name])]));

/** Returns the counters of these records, in the order of ALL_SUMS. */
export function countersOf(records: readonly UsageRecord[]): number[] {
  const finishes = records.flatMap(({ finishReasons }) => finishReasons);
  return [
    records.length,
    ...(['completed', 'failed', 'cancelled', 'abandoned'] as const).map((status) =>
      count(records, (record) => record.status === status),
    ),
    ...(['stop', 'length'] as const).map((reason) => count(finishes, (finish) => finish === reason)),
    sum(records, ({ usage }) => usage.promptTokens),
    sum(records, ({ usage }) => usage.cachedTokens),
    sum(records, ({ usage }) => usage.completionTokens),
    // Records of older limiters have no cost.
    sum(records, ({ cost = 0 }) => cost),
    sum(records, ({ latencyMs }) => latencyMs),
    sum(records, ({ firstTokenMs }) => firstTokenMs ?? 0),
    count(records, ({ firstTokenMs }) => firstTokenMs !== null),
  ];
}

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

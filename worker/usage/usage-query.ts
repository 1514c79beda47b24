/** Queries on the usage ledger. */

export const USAGE_GROUPS = ['day', 'tenant', 'model', 'key'] as const;
export type UsageGroup = (typeof USAGE_GROUPS)[number];

export interface UsageFilter {
  /** First and last UTC day, YYYY-MM-DD, both inclusive; null = unbounded. */
  readonly from: string | null;
  readonly to: string | null;
  readonly tenantId: string | null;
  readonly keyId: string | null;
  readonly model: string | null;
}

const COLUMNS: Readonly<Record<UsageGroup, string>> = {
  day: 'day',
  tenant: 'tenant_id',
  model: 'model',
  key: 'key_id',
};

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
] as const;

/** Columns that the admin API shows as means: milliseconds, and the number of requests with a first token. */
const SUMS_FOR_MEANS = ['latency_ms', 'first_token_ms', 'first_tokens'] as const;

/** Sums of one group, with the values of the columns that were grouped by. */
export type UsageSums = Partial<Record<UsageGroup, string>> &
  Record<(typeof SUMS)[number] | (typeof SUMS_FOR_MEANS)[number], number>;

export async function queryUsage(
  db: D1Database,
  filter: UsageFilter,
  groups: readonly UsageGroup[],
): Promise<UsageSums[]> {
  const selected = groups.map((group) => `${COLUMNS[group]} AS "${group}"`);
  const sums = [...SUMS, ...SUMS_FOR_MEANS].map((name) => `SUM(${name}) AS ${name}`);
  const columns = groups.map((group) => COLUMNS[group]).join(', ');
  const { results } = await db
    .prepare(`
      SELECT ${[...selected, ...sums].join(', ')} FROM usage_daily
      WHERE (?1 IS NULL OR day >= ?1) AND (?2 IS NULL OR day <= ?2) AND (?3 IS NULL OR tenant_id = ?3)
        AND (?4 IS NULL OR key_id = ?4) AND (?5 IS NULL OR model = ?5)
      GROUP BY ${columns} ORDER BY ${columns}`)
    .bind(filter.from, filter.to, filter.tenantId, filter.keyId, filter.model)
    .all<UsageSums>();
  return results;
}

import { type Account, askJson } from '../account.ts';
import { DAY_S, dayOf } from '../formats.ts';

/** What the view asks `/v1/usage`. */

export type UsageGroup = 'day' | 'model' | 'key' | 'user';

/** Days are UTC, inclusive, as YYYY-MM-DD. */
export interface UsageRange {
  readonly from: string;
  readonly to: string;
}

/** Only requests of this model, key or end user; absent = of all. */
export interface UsageFilter {
  readonly model?: string;
  readonly key?: string;
  /** The name of an end user, as in the field `user` of requests. */
  readonly user?: string;
}

export interface UsageSums {
  readonly requests: number;
  readonly failed: number;
  readonly prompt_tokens: number;
  readonly cached_tokens: number;
  readonly completion_tokens: number;
  readonly cost_micros: number;
}

export interface UsageRow extends UsageSums {
  readonly day?: string;
  readonly model?: string;
  readonly key?: string;
  /** Hash of the name of an end user. */
  readonly user?: string;
  readonly mean_first_token_ms: number | null;
}

export interface Usage {
  readonly data: readonly UsageRow[];
  readonly has_more: boolean;
  readonly total: UsageSums;
}

/** The longest range; days that are older are sums of months on the server. */
const MAX_DAYS = 400;
/** Groups that are shown; the download has all. */
export const MAX_ROWS = 2_000;

const DAY_MS = DAY_S * 1000;

/** Returns the last `days` days, today included. @param now Unix milliseconds */
export const lastDays = (days: number, now: number): UsageRange => ({
  from: dayOf(now - (days - 1) * DAY_MS),
  to: dayOf(now),
});

/** Returns every day of a range. */
export function daysIn({ from, to }: UsageRange): string[] {
  const [first, last] = [Date.parse(from), Date.parse(to)];
  const length = Math.max(0, Math.round((last - first) / DAY_MS) + 1);
  return Array.from({ length }, (_, at) => dayOf(first + at * DAY_MS));
}

/** Returns why a range cannot be asked for; null if it can. */
export function rangeFault({ from, to }: UsageRange): string | null {
  const days = daysIn({ from, to }).length;
  if (from === '' || to === '' || days === 0) return 'Choose a first day that is not after the last one.';
  return days > MAX_DAYS ? `Choose at most ${MAX_DAYS} days.` : null;
}

const search = (
  range: UsageRange,
  filter: UsageFilter,
  groups: string,
  rest: Record<string, string>,
): string => String(new URLSearchParams({ ...range, ...filter, group_by: groups, ...rest }));

export const loadUsage = (
  account: Account,
  { range, filter, group }: { range: UsageRange; filter: UsageFilter; group: UsageGroup },
  signal: AbortSignal,
): Promise<Usage> => {
  const query = search(range, filter, group, { limit: String(MAX_ROWS) });
  return askJson<Usage>(account, `/v1/usage?${query}`, { signal });
};

/** Returns all pages of the usage by day and group as one CSV, with one line of names. */
export async function usageCsv(
  account: Account,
  { range, filter, group }: { range: UsageRange; filter: UsageFilter; group: UsageGroup },
): Promise<Blob> {
  const groups = group === 'day' ? 'day' : `day,${group}`;
  const parts: string[] = [];
  let next: string | undefined = `/v1/usage?${search(range, filter, groups, { format: 'csv' })}`;
  while (next !== undefined) {
    const response: Response = await account.ask(next);
    const text = await response.text();
    parts.push(parts.length === 0 ? text : text.slice(text.indexOf('\r\n') + 2));
    next = /<([^>]*)>; *rel="next"/.exec(response.headers.get('link') ?? '')?.[1];
  }
  return new Blob(parts, { type: 'text/csv' });
}

import { type Account, askJson, useAccount } from '../account.ts';
import type { UsageRow } from '../api-objects.ts';
import { DAY_S, dayOf } from '../formats.ts';
import { type Resource, useResource } from '../resource.ts';

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

export type UsageSums = Pick<
  UsageRow,
  'requests' | 'failed' | 'prompt_tokens' | 'cached_tokens' | 'completion_tokens' | 'cost_micros'
>;

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

/** What the view asks for. */
export interface UsageQuestion {
  readonly range: UsageRange;
  readonly filter: UsageFilter;
  readonly group: UsageGroup;
}

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

const addressOf = (
  { range, filter }: UsageQuestion,
  groups: string,
  rest: Readonly<Record<string, string>>,
): string => `/v1/usage?${new URLSearchParams({ ...range, ...filter, group_by: groups, ...rest })}`;

/** Loads what a question asks for, with the question that it answers. */
export function useUsage(question: UsageQuestion): Resource<Usage & UsageQuestion> {
  const account = useAccount();
  const address = addressOf(question, question.group, { limit: String(MAX_ROWS) });
  return useResource(
    async (signal) => ({ ...(await askJson<Usage>(account, address, { signal })), ...question }),
    address,
  );
}

/** Returns all pages of the usage by day and group as one CSV, with one line of names. */
export async function usageCsv(account: Account, question: UsageQuestion): Promise<Blob> {
  const groups = question.group === 'day' ? 'day' : `day,${question.group}`;
  const parts: string[] = [];
  let next: string | undefined = addressOf(question, groups, { format: 'csv' });
  while (next !== undefined) {
    const response: Response = await account.ask(next);
    const text = await response.text();
    parts.push(parts.length === 0 ? text : text.slice(text.indexOf('\r\n') + 2));
    next = /<([^>]*)>; *rel="next"/.exec(response.headers.get('link') ?? '')?.[1];
  }
  return new Blob(parts, { type: 'text/csv' });
}

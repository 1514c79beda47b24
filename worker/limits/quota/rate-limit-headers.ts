import type { Gauge, RateLimitStatus } from './protocol.ts';
import { type Counters, type Subject, subjectState } from './state.ts';
import { type Meter, momentOf, resetIn, used } from './window.ts';

/** Formats a duration as Go does: `0s`, `12ms`, `1.5s`, `1m30.951s`, `24h0m0s`. */
export function goDuration(milliseconds: number): string {
  const ms = Math.max(0, Math.ceil(milliseconds));
  if (ms > 0 && ms < 1000) return `${ms}ms`;
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor((ms % 3_600_000) / 60_000);
  const seconds = `${(ms % 60_000) / 1000}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}

function gauge(meter: Meter, limit: number | null, now: number): Gauge | null {
  if (limit === null) return null;
  const remaining = Math.max(0, limit - used(meter, 'minute', momentOf(now)));
  return { limit, remaining, resetMs: resetIn(meter, now) };
}

/** Returns the limit with the least left. */
const tightest = (gauges: (Gauge | null)[]): Gauge | null =>
  gauges.reduce((best, next) => (next && (!best || next.remaining < best.remaining) ? next : best), null);

/** Returns the status of the tighter of tenant and key. */
export function rateLimitStatus(
  counters: Counters,
  subjects: readonly Subject[],
  now: number,
): RateLimitStatus {
  const of = (name: keyof RateLimitStatus, field: 'requestsPerMinute' | 'tokensPerMinute') =>
    tightest(subjects.map(({ id, limits }) => gauge(subjectState(counters, id)[name], limits[field], now)));
  return { requests: of('requests', 'requestsPerMinute'), tokens: of('tokens', 'tokensPerMinute') };
}

/** Returns the `x-ratelimit-*` headers of a status; none if there is no limit. */
export function headersOf(status: RateLimitStatus): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of ['requests', 'tokens'] as const) {
    const gauge = status[name];
    if (!gauge) continue;
    headers[`x-ratelimit-limit-${name}`] = String(gauge.limit);
    headers[`x-ratelimit-remaining-${name}`] = String(gauge.remaining);
    headers[`x-ratelimit-reset-${name}`] = goDuration(gauge.resetMs);
  }
  return headers;
}

/** Returns the `x-ratelimit-*` headers for the tighter of tenant and key; none if there is no limit. */
export const rateLimitHeaders = (
  counters: Counters,
  subjects: readonly Subject[],
  now: number,
): Record<string, string> => headersOf(rateLimitStatus(counters, subjects, now));

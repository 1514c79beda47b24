import { type QuotaState, type Subject, subjectState } from './state.ts';
import { resetIn, used, type Window } from './window.ts';

/** A duration as Go prints it: `0s`, `12ms`, `1.5s`, `1m30.951s`, `24h0m0s`. */
export function goDuration(milliseconds: number): string {
  const ms = Math.max(0, Math.ceil(milliseconds));
  if (ms > 0 && ms < 1000) return `${ms}ms`;
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor((ms % 3_600_000) / 60_000);
  const seconds = `${(ms % 60_000) / 1000}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}

interface Gauge {
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
}

function gauge(window: Window, limit: number | null, now: number): Gauge | null {
  if (limit === null) return null;
  return { limit, remaining: Math.max(0, limit - used(window, now)), resetMs: resetIn(window, now) };
}

/** The limit that binds first: the one with least left. */
const tightest = (gauges: (Gauge | null)[]): Gauge | null =>
  gauges.reduce((best, next) => (next && (!best || next.remaining < best.remaining) ? next : best), null);

/** `x-ratelimit-*` headers for the tighter of tenant and key; none where there is no limit. */
export function rateLimitHeaders(
  state: QuotaState,
  subjects: readonly Subject[],
  now: number,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, field] of [
    ['requests', 'requestsPerMinute'],
    ['tokens', 'tokensPerMinute'],
  ] as const) {
    const found = tightest(
      subjects.map((subject) => gauge(subjectState(state, subject.id)[name], subject.limits[field], now)),
    );
    if (!found) continue;
    headers[`x-ratelimit-limit-${name}`] = String(found.limit);
    headers[`x-ratelimit-remaining-${name}`] = String(found.remaining);
    headers[`x-ratelimit-reset-${name}`] = goDuration(found.resetMs);
  }
  return headers;
}

import type { Usage } from '@continuo/shared/generation.ts';
import { type KnownAccount, maxUsage } from '@continuo/shared/usage.ts';
import { type QuotaReservation, reservedBy } from '../quota/state.ts';
import { affordable, within } from '../usage/price.ts';
import { priceOf } from '../usage/reservation-id.ts';
import type { UsageRecord } from '../usage/usage-record.ts';
import type { OpenReservation } from './open-reservation.ts';

/**
 * The limiter retries unreachable upstreams for this many lifetimes: 10 min by default. Origins keep accounts
 * as long.
 */
const ACCOUNT_LIFETIMES = 20;
/** An upstream that still generates for a disconnected client is asked again after this time. */
const STILL_RUNNING_MS = 1_000;
/** The stream of a vanished Worker may go on. It is asked about this often per lifetime. */
const INQUIRIES_PER_LIFETIME = 8;

/** What an upstream has generated beyond the reservation was never relayed. */
function billable(usage: Usage, { limited, ...reservation }: QuotaReservation): Usage {
  if (!limited) return usage;
  const { tokens, money } = reservedBy(reservation);
  const promptTokens = Math.min(usage.promptTokens, tokens);
  const completionTokens = Math.min(usage.completionTokens, tokens - promptTokens);
  const cachedTokens = Math.min(usage.cachedTokens, promptTokens);
  return within(priceOf(reservation.id), money, { promptTokens, cachedTokens, completionTokens });
}

/**
 * What a vanished Worker may have relayed since its last report, if the upstream keeps no account: all that
 * is reserved. Without limits, that would be the maximum of the request, so the report counts.
 */
function relayable({ record, reservation }: Pick<OpenReservation, 'record' | 'reservation'>): Usage {
  const { usage, upstream, status } = record;
  if (!reservation.limited || upstream === null || status !== 'abandoned') return usage;
  const { tokens, money } = reservedBy(reservation);
  const most = Math.min(tokens, affordable(priceOf(reservation.id), money, usage));
  return { ...usage, completionTokens: most - usage.promptTokens };
}

/** Returns the record after an inquiry, and when to ask again; null = the record is final. Pure. */
export function recordAfter(
  { record, reservation, ttlMs }: OpenReservation,
  { account, complete }: KnownAccount,
  now: number,
): { readonly record: UsageRecord; readonly askAt: number | null } {
  // An origin that was killed and restarted may know less than its Worker has relayed.
  const told = account ? billable(account.usage, reservation) : relayable({ record, reservation });
  const usage = maxUsage(told, record.usage);
  const ended = account?.finishReasons ?? [];
  const finishReasons = ended.length > record.finishReasons.length ? ended : record.finishReasons;
  const { status, startedAt } = record;
  const latencyMs = status === 'abandoned' ? now - startedAt : record.latencyMs;
  const firstTokenMs = record.firstTokenMs ?? account?.firstTokenMs ?? null;
  const late = now >= reservation.expiresAt + ACCOUNT_LIFETIMES * ttlMs;
  // An upstream may never say that a generation has ended. One that has grown is never too late.
  const hasGrown = usage.completionTokens > record.usage.completionTokens;
  const isRunning = account?.ended === false && (hasGrown || !late);
  const isFinal = !isRunning && (complete || late);
  // An upstream soon notices that its reader has disconnected.
  const running = status === 'abandoned' ? ttlMs / INQUIRIES_PER_LIFETIME : Math.min(STILL_RUNNING_MS, ttlMs);
  const delay = isRunning ? running : ttlMs;
  const updated = { ...record, usage, finishReasons, latencyMs, firstTokenMs };
  return { record: updated, askAt: isFinal ? null : now + delay };
}

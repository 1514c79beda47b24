import type { Usage } from '@continuo/shared/generation.ts';
import { type ListedAccount, maxUsage } from '@continuo/shared/usage.ts';
import type { Env } from '../../env/env.ts';
import { parseSettings } from '../../env/settings.ts';
import { affordable, within } from '../../prices/price.ts';
import type { Catalogue, KnownAccount } from '../../upstreams/pool.ts';
import { UpstreamDirectory } from '../../upstreams/upstream-directory.ts';
import { priceOf } from '../../usage/reservation-id.ts';
import type { UsageRecord } from '../../usage/usage-record.ts';
import { type QuotaReservation, reservedBy } from '../quota/state.ts';
import type { OpenReservation } from './open-reservation.ts';

/**
 * The limiter retries unreachable upstreams for this many lifetimes: 10 min by default. Origins keep accounts
 * as long.
 */
const ACCOUNT_LIFETIMES = 20;
const ACCOUNT_TIMEOUT_MS = 5_000;
/** An upstream that still generates for a disconnected client is asked again after this time. */
const STILL_RUNNING_MS = 1_000;
/** The stream of a vanished Worker may go on. It is asked about this often per lifetime. */
const INQUIRIES_PER_LIFETIME = 8;

/** Asks upstreams what ended requests have used. */
export class UsageInquiry {
  readonly #env: Env;
  #directory: UpstreamDirectory | null = null;

  constructor(env: Env) {
    this.#env = env;
  }

  /** Returns the accounts whose names begin with this text; null if they are not known now. */
  async under(prefix: string): Promise<readonly ListedAccount[] | null> {
    try {
      const upstreams = await this.#upstreams();
      return await upstreams.accountsUnder(prefix, AbortSignal.timeout(ACCOUNT_TIMEOUT_MS));
    } catch {
      return null;
    }
  }

  async #upstreams(): Promise<Catalogue> {
    this.#directory ??= new UpstreamDirectory(this.#env, parseSettings(this.#env), Date.now);
    return this.#directory.catalogue(this.#env.DB);
  }

  /** Never fails: an upstream that cannot be asked leaves the answer incomplete. */
  async ask({ reservation, record }: OpenReservation): Promise<KnownAccount> {
    try {
      // If the Worker vanished, the request may have moved to another upstream, so the limiter asks all.
      const upstream = record.status === 'abandoned' ? null : record.upstream;
      const upstreams = await this.#upstreams();
      const signal = AbortSignal.timeout(ACCOUNT_TIMEOUT_MS);
      return await upstreams.usageOf(reservation.id, upstream, signal);
    } catch {
      // For example because a variable is invalid.
      return { account: null, complete: false };
    }
  }
}

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
  const isRunning = account?.ended === false;
  const isFinal = !isRunning && (complete || late);
  // An upstream soon notices that its reader has disconnected.
  const running = status === 'abandoned' ? ttlMs / INQUIRIES_PER_LIFETIME : Math.min(STILL_RUNNING_MS, ttlMs);
  const delay = isRunning ? running : ttlMs;
  const updated = { ...record, usage, finishReasons, latencyMs, firstTokenMs };
  return { record: updated, askAt: isFinal ? null : now + delay };
}

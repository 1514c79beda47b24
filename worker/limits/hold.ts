import type { ApiError } from '@continuo/shared/errors.ts';
import type { Usage } from '@continuo/shared/generation.ts';
import { isActive, type Principal } from '@continuo/shared/tenant.ts';
import { Claim } from './claim.ts';
import { Growth } from './growth.ts';
import type { HeldRequest } from './held-request.ts';
import { callObject } from './limiter-client.ts';
import { type Outcome, settlementOf } from './outcome.ts';
import type { Spend } from './quota/budget.ts';
import { isSome } from './quota/local-budgets.ts';
import type { RequestCost, RequestTokens } from './reservation.ts';
import { Reservation, spendFor } from './reservation.ts';
import { NO_USAGE } from './usage/usage-record.ts';

/** The limits, as the rest of the Worker uses them. README.md defines their words. */

/**
 * Reserves requests, tokens, money and concurrency together, for the tenant and for the key. Also sets the
 * response's `x-ratelimit-*` headers.
 * @throws ApiError 429, also if the limiter is overloaded; 401 or 403 if the key or tenant was blocked
 *   recently; 503 if the limiter fails
 */
export async function begin(principal: Principal, cost: RequestCost, context: HeldRequest): Promise<Hold> {
  const claim = new Claim(principal, cost, context);
  const first = spendFor(cost, claim.limitsSpend ? cost.tokens : cost.most);
  const reserve = () => claim.resultOf(claim.limiter.reserve(claim.of(first), context));
  const { requestId } = await context.timings.measure('limit', reserve);
  return new Hold(claim, new Reservation(requestId, first, cost));
}

/** Renewals per lifetime of a reservation; all but one may be lost. */
const RENEWALS = 3;

/** What a running request has used so far, and where. Both change while it runs. */
interface Progress {
  readonly tally: { readonly usage: Usage };
  readonly upstream: { readonly name: string | null };
}

/** The reservation of a running request, as the rest of the Worker uses it. */
export class Hold {
  readonly #claim: Claim;
  readonly #reserved: Reservation;
  readonly #growth: Growth;
  #progress: Progress = { tally: { usage: NO_USAGE }, upstream: { name: null } };
  #endRenewals: () => void;
  readonly #startedAt: number;

  constructor(claim: Claim, reserved: Reservation) {
    this.#claim = claim;
    this.#reserved = reserved;
    this.#growth = new Growth(claim, reserved);
    this.#startedAt = claim.context.now();
    this.#endRenewals = this.#nextRenewal(claim.context.settings.RESERVATION_TTL_MS);
  }

  /** The upstream keeps its usage account of the request under this id. */
  get id(): string {
    return this.#reserved.id;
  }

  get reserved(): Spend {
    return this.#reserved.spend;
  }

  /** Tokens that it may use without reserving more. */
  get usable(): number {
    return this.#reserved.usable;
  }

  /** From now on, renewals report this. It is billed if `end` is never called. */
  watch(progress: Progress): void {
    this.#progress = progress;
  }

  /** Renews the reservation, which expires otherwise, and reads its limits again, until the request ends. */
  #nextRenewal(ttlMs: number): () => void {
    const { limiter, context } = this.#claim;
    return context.timers.after(ttlMs / RENEWALS, () => {
      const { tally, upstream } = this.#progress;
      limiter.renew(this.id, { usage: tally.usage, upstream: upstream.name, ttlMs }, context);
      void this.#claim.refresh();
      this.#endRenewals = this.#nextRenewal(ttlMs);
    });
  }

  /**
   * The prompts have been counted: reserves more tokens if they are more than was estimated.
   * @throws ApiError 429 if they exceed a limit; then the caller ends the hold; 503 if the limiter fails
   */
  async counted(counted: RequestTokens): Promise<void> {
    if (!this.#claim.limitsSpend) return;
    const { limiter, context } = this.#claim;
    const needed = this.#reserved.counted(counted);
    const missing = this.#reserved.missing(needed);
    if (isSome(missing) && !isSome(limiter.extend(this.#claim.of(missing), this.id, true, context))) {
      const request = { ...this.#claim.of(needed), requestId: this.id, raise: 'prompt' } as const;
      await this.#claim.resultOf(limiter.raise(request, context));
    }
    this.#reserved.raise(needed);
  }

  /**
   * The request is about to use so many tokens in all. Reserves more if necessary, and ahead of need unless
   * nothing follows. Returns the limit that has no room for them, as usage names it; null = go on. If it
   * returns a promise, that waits until there is room, or until `end`.
   * @throws ApiError by the promise: if the key was blocked; 503 if the object cannot be reached
   */
  spend(tokens: number, isLast = false): null | Promise<string | null> {
    if (!this.#reserved.isLow(tokens)) return null;
    this.#reserved.cached(this.#progress.tally.usage.cachedTokens);
    if (!this.#reserved.covers(tokens)) return this.#growth.until(tokens, isLast);
    if (!isLast) this.#growth.ahead(tokens);
    return null;
  }

  /** The error of a key revoked or expired meanwhile or a suspended tenant; null = the request goes on. */
  async block(): Promise<ApiError | null> {
    const { principal, context, limiter } = this.#claim;
    const { tenant, key } = principal;
    if (tenant.suspended) return this.#claim.errorOf('suspended');
    if (!isActive(key, context.now())) return this.#claim.errorOf('revoked');
    if (limiter.isKnownOpen(key.id, context)) return null;
    const ask = () => callObject(context, tenant.id, (object) => object.blockOf(key.id));
    const block = await context.recentBlocks.of(key.id, ask);
    return block && this.#claim.errorOf(block);
  }

  /**
   * Bills the request, and gives the rest back. To be called exactly once. The object learns it a moment
   * later.
   */
  end(outcome: Outcome): void {
    const { context, limiter } = this.#claim;
    const { now, timings, caller } = context;
    const startedAt = this.#startedAt;
    this.#endRenewals();
    this.#growth.end();
    if (outcome.queueMs !== undefined) timings.set('queue', outcome.queueMs);
    if (outcome.firstTokenAt !== null) timings.set('first-token', outcome.firstTokenAt - startedAt);
    const unused = this.#reserved.unused(outcome.usage);
    const settlement = settlementOf(outcome, caller.endUser, { startedAt, now: now() });
    const { inquire = false } = outcome;
    limiter.settle({ requestId: this.id, settlement, inquire }, unused, context);
  }
}

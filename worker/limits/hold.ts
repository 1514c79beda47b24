import type { ApiError } from '@continuo/shared/errors.ts';
import type { Principal } from '@continuo/shared/tenant.ts';
import { isActive } from '../auth/auth.ts';
import type { Spend } from '../env/limiter-protocol.ts';
import type { RequestContext } from '../http/request-context.ts';
import { Claim } from './claim.ts';
import { Growth } from './growth.ts';
import { callHome } from './limiter-client.ts';
import { type Outcome, settlementOf } from './outcome.ts';
import { isSome } from './quota/local-budgets.ts';
import { type Progress, Renewals } from './renewals.ts';
import type { RequestCost, RequestTokens } from './request-cost.ts';
import { ReservedSpend, spendFor } from './reserved-spend.ts';

/**
 * Reserves requests, tokens, money and concurrency together, for the tenant and for the key. Also sets the
 * response's `x-ratelimit-*` headers.
 * @throws ApiError 429, also if the limiter is overloaded; 401 or 403 if the key or tenant was blocked
 *   recently; 503 if the limiter fails
 */
export async function begin(principal: Principal, cost: RequestCost, context: RequestContext): Promise<Hold> {
  const claim = new Claim(principal, cost, context);
  const first = spendFor(cost.price, cost.prompt, claim.limitsSpend ? cost.tokens : cost.most);
  const reserve = () => claim.answered(claim.limiter.reserve(claim.of(first), context));
  const { requestId } = await context.timings.measure('limit', reserve);
  return new Hold(requestId, claim, new ReservedSpend(first, cost, cost.price), context);
}

/** What a running request has reserved, until `end`. */
export class Hold {
  /** Unique. The upstream keeps its usage account of the request under this id. */
  readonly id: string;
  readonly #claim: Claim;
  readonly #reserved: ReservedSpend;
  readonly #growth: Growth;
  readonly #renewals: Renewals;
  readonly #context: RequestContext;
  readonly #startedAt: number;

  constructor(id: string, claim: Claim, reserved: ReservedSpend, context: RequestContext) {
    this.id = id;
    this.#claim = claim;
    this.#reserved = reserved;
    this.#growth = new Growth(id, claim, reserved, context);
    this.#renewals = new Renewals(id, claim, context);
    this.#context = context;
    this.#startedAt = context.now();
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
    this.#renewals.watch(progress);
  }

  /**
   * The prompts have been counted: reserves more tokens if they are more than was estimated.
   * @throws ApiError 429 if they exceed a limit; then the caller ends the hold; 503 if the limiter fails
   */
  async counted(known: RequestTokens): Promise<void> {
    if (!this.#claim.limitsSpend) return;
    const { limiter } = this.#claim;
    const needed = this.#reserved.counted(known);
    const missing = this.#reserved.missing(needed);
    if (isSome(missing) && !isSome(limiter.extend(this.#claim.of(missing), this.id, true, this.#context))) {
      const request = { ...this.#claim.of(needed), requestId: this.id, raise: 'prompt' } as const;
      await this.#claim.answered(limiter.raise(request, this.#context));
    }
    this.#reserved.raise(needed);
  }

  /**
   * The request is about to use so many tokens in all. Reserves more if necessary, and ahead of need unless
   * nothing follows. Returns the limit that has no room for them, as usage names it; null = go on. If it
   * returns a promise, that waits until there is room, or until `end`.
   * @throws ApiError by the promise: if the key was blocked; 503 if home cannot be reached
   */
  spend(tokens: number, isLast = false): null | Promise<string | null> {
    if (!this.#reserved.isLow(tokens)) return null;
    this.#reserved.cached(this.#renewals.usage.cachedTokens);
    if (!this.#reserved.covers(tokens)) return this.#growth.until(tokens, isLast);
    if (!isLast) this.#growth.ahead(tokens);
    return null;
  }

  /** The error of a key revoked or expired meanwhile or a suspended tenant; null = the request goes on. */
  async block(): Promise<ApiError | null> {
    const { tenant, key } = this.#claim.principal;
    if (tenant.suspended) return this.#claim.errorOf('suspended');
    const ask = () => callHome(this.#context, tenant.id, (home) => home.blockOf(key.id));
    const isOpen = isActive(key, this.#context.now());
    const block = isOpen ? await this.#context.recentBlock(key.id, ask) : 'revoked';
    return block && this.#claim.errorOf(block);
  }

  /** Bills the request, and gives the rest back. To be called exactly once. Home learns it a moment later. */
  end(outcome: Outcome): void {
    const { now, timings, caller } = this.#context;
    const startedAt = this.#startedAt;
    this.#renewals.end();
    this.#growth.end();
    if (outcome.queueMs !== undefined) timings.set('queue', outcome.queueMs);
    if (outcome.firstTokenAt !== null) timings.set('first-token', outcome.firstTokenAt - startedAt);
    const unused = this.#reserved.unused(outcome.usage);
    const settlement = settlementOf(outcome, caller.endUser, { startedAt, now: now() });
    const { inquire = false } = outcome;
    this.#claim.limiter.settle({ requestId: this.id, settlement, inquire }, unused, this.#context);
  }
}

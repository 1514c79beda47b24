import type { ApiError } from '@continuo/shared/errors.ts';
import { isOverloaded } from '@continuo/shared/retry.ts';
import type { Principal } from '@continuo/shared/tenant.ts';
import { endUserOf } from './end-user.ts';
import type { HeldRequest } from './held-request.ts';
import type { IsolateLimiter } from './isolate-limiter.ts';
import { limitError, limiterOverloaded, type Refusal, unchecked } from './limit-errors.ts';
import { BUDGETS, type Budget, type Spend } from './quota/budget.ts';
import type { Claimant, EndUser, ReservationResult } from './quota/protocol.ts';
import type { Subject } from './quota/state.ts';
import type { RequestCost } from './reservation.ts';
import { spendFor } from './reservation.ts';

/** Returns whether limits include one of these resources. */
export const hasLimit = (limits: Subject['limits'], resources: readonly Budget['resource'][]): boolean =>
  BUDGETS.some(
    ({ resource, limit }) =>
      limit !== null && resources.includes(resource) && (limits[limit] ?? null) !== null,
  );

/** A request for a reservation: who asks, with the limits that apply now, and what for. */
export class Claim {
  readonly limiter: IsolateLimiter;
  /** A limit of tokens applies to the request, or one of money if its tokens cost any. */
  readonly limitsSpend: boolean;
  readonly context: HeldRequest;
  readonly #cost: RequestCost;
  #principal: Principal;
  #endUser: EndUser | null;

  constructor(principal: Principal, cost: RequestCost, context: HeldRequest) {
    const { tenant, key } = principal;
    this.limiter = context.limiters.of(tenant.id);
    this.#cost = cost;
    this.context = context;
    this.#principal = principal;
    this.#endUser = endUserOf(principal, context.caller.endUser);
    const holders = [tenant, key, ...(this.#endUser ? [this.#endUser] : [])];
    const resources = cost.price === null ? (['tokens'] as const) : (['tokens', 'money'] as const);
    this.limitsSpend = holders.some(({ limits }) => hasLimit(limits, resources));
  }

  get principal(): Principal {
    return this.#principal;
  }

  /** Returns the claim of so much. */
  of({ tokens, money }: Spend): Claimant {
    const { tenant, key } = this.#principal;
    const { model, price } = this.#cost;
    return {
      tenantId: tenant.id,
      keyId: key.id,
      tenantLimits: tenant.limits,
      keyLimits: key.limits,
      model,
      tokens,
      money,
      price,
      ttlMs: this.context.settings.RESERVATION_TTL_MS,
      endUser: this.#endUser,
    };
  }

  /** Reads the caller again: its limits and its key may change while the request runs. */
  async refresh(): Promise<void> {
    this.#principal = await this.context.currentPrincipal(this.#principal);
    // The request is charged to its end user until its end, also if end users have no limits any more.
    this.#endUser = endUserOf(this.#principal, this.context.caller.endUser) ?? this.#endUser;
  }

  /**
   * Takes the limiter's reply, with the response's `x-ratelimit-*` headers.
   * @throws ApiError 429, also if the limiter is overloaded; 401 or 403 if the key or tenant was blocked
   *   recently; 503 if the limiter fails
   */
  async resultOf<T extends ReservationResult>(asked: Promise<T>): Promise<T> {
    const { reply, backoff } = this.context;
    const result = await asked.catch((thrown: unknown) => {
      // The limiter is not called again for this request, because a limiter that fails may have too many
      // calls already.
      reply.limits = null;
      throw isOverloaded(thrown) ? limiterOverloaded(backoff.random()) : unchecked();
    });
    reply.limits = result.headers;
    if (!result.admitted) throw this.errorOf(result.refusal);
    return result;
  }

  errorOf(refusal: Refusal): ApiError {
    const { model, most } = this.#cost;
    return limitError(refusal, this.#principal, { model, most: spendFor(this.#cost, most) });
  }
}

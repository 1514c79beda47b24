import { ApiError } from '../../shared/errors.ts';
import type { FinishReason, Usage } from '../../shared/generation.ts';
import type { Principal } from '../../shared/tenant.ts';
import type { RequestContext } from '../context.ts';
import { insistently } from '../retry.ts';
import { NO_USAGE } from '../usage/usage-record.ts';
import { refused } from './limit-errors.ts';
import type { TenantLimiter } from './objects/tenant-limiter.ts';
import type { Ending, Inquiry, Progress, Reservation, ReservationRequest, Settlement } from './protocol.ts';

/** What a request may cost at most, estimated before it is tokenised. */
export interface Cost {
  /** Estimated prompt tokens plus everything that may be generated. */
  readonly tokens: number;
  /** The model's id, whatever the caller calls it: usage is counted under it. */
  readonly model: string;
}

/** How a generation ended; told exactly once, whatever happened. */
export interface Outcome {
  /** `cancelled`: the client went away. `failed`: the upstream or we did. */
  readonly status: 'completed' | 'failed' | 'cancelled';
  readonly usage: Usage;
  /** Code of the error the caller saw; null for `completed` and `cancelled`. */
  readonly errorCode: string | null;
  readonly finishReasons: readonly FinishReason[];
  /** Name of the upstream that served it; null when none was reached. */
  readonly upstream: string | null;
  /** Unix milliseconds of the first generated token; null when there was none. */
  readonly firstTokenAt: number | null;
  /** Milliseconds its prompts waited at the upstream, the longest of them; for the timings of the answer. */
  readonly queueMs?: number;
  /** The upstream may have generated more than was seen of it. */
  readonly inquire?: boolean;
}

/** A reservation. Whoever holds it settles it exactly once. */
export interface Lease {
  /** Unique; under this name the upstream keeps its own account of the request. */
  readonly id: string;
  /** From now on the lease's signs of life tell what `progress` says; it is billed if no settlement ever comes. */
  watch(progress: () => Pick<Progress, 'usage' | 'upstream'>): void;
  settle(outcome: Outcome): Promise<void>;
}

/** The tenant's home, or its deputy near the caller. */
interface Limiter {
  /** The endings come first: what they free, the request may take. */
  reserve(request: ReservationRequest, endings: readonly Ending[]): Promise<Reservation>;
  renew(requestId: string, progress: Progress): Promise<unknown>;
  settle(endings: readonly Ending[]): Promise<unknown>;
  standing(inquiry: Inquiry): Promise<Record<string, string>>;
}

export function limiterOf(
  context: Pick<RequestContext, 'env'>,
  tenantId: string,
): DurableObjectStub<TenantLimiter> {
  return context.env.LIMITER.get(context.env.LIMITER.idFromName(tenantId));
}

type Place = Pick<RequestContext, 'env' | 'region'>;

/** Tenants' ids have no `@`. */
const nearestName = ({ region }: Place, tenantId: string): string =>
  region === null ? tenantId : `${tenantId}@${region}`;

/** For one call: a limiter that restarts breaks the handles there are of it. */
export function nearestLimiter(place: Place, tenantId: string): Limiter {
  const { env, region } = place;
  if (region === null) return limiterOf(place, tenantId);
  return env.REGIONS.get(env.REGIONS.idFromName(nearestName(place, tenantId)));
}

/** Signs of life in the time of one lease; all but one may be lost. */
const RENEWALS = 3;

/**
 * Reserves requests, tokens and concurrency together, for the tenant and for the key; the answer will say what is left.
 * @throws ApiError 429; 401 or 403 for a key or tenant that was blocked a moment ago; 503 when nobody can decide
 */
export async function admit(principal: Principal, cost: Cost, context: RequestContext): Promise<Lease> {
  const { tenant, key } = principal;
  // A name of our own: the caller chooses its request id, and may choose the same one twice.
  const requestId = `${context.requestId}.${context.randomHex(8)}`;
  const limiter = () => nearestLimiter(context, tenant.id);
  const request: ReservationRequest = {
    requestId,
    tenantId: tenant.id,
    keyId: key.id,
    model: cost.model,
    tokens: cost.tokens,
    tenantLimits: tenant.limits,
    keyLimits: key.limits,
    leaseMs: context.settings.LEASE_MS,
  };
  const limiterName = nearestName(context, tenant.id);
  // May be repeated: the limiter knows requests by their id.
  const ask = () =>
    context.endings.along(limiterName, async (endings) => await limiter().reserve(request, endings));
  const reservation = await context.timings
    .measure('limit', () => insistently(ask))
    .catch(() => {
      // Letting everybody in would make the limits worthless in the very moment they are needed.
      throw new ApiError('server_is_overloaded', 'The limits of this tenant cannot be checked right now.');
    });
  context.answer.limits = reservation.headers;
  if (!reservation.admitted) throw refused(reservation.refusal, principal, cost);
  return lease(limiter, limiterName, requestId, context);
}

function lease(
  limiter: () => Limiter,
  limiterName: string,
  requestId: string,
  { now, timings, timers, endings, settings }: RequestContext,
): Lease {
  const startedAt = now();
  const leaseMs = settings.LEASE_MS;
  let progress: Parameters<Lease['watch']>[0] = () => ({ usage: NO_USAGE, upstream: null });
  // The timer dies with the request's context, and with it the signs of life.
  const renew = (): void => {
    limiter()
      .renew(requestId, { ...progress(), leaseMs })
      .catch(() => {});
    renewed = timers.after(leaseMs / RENEWALS, renew);
  };
  let renewed = timers.after(leaseMs / RENEWALS, renew);
  return {
    id: requestId,
    watch(latest) {
      progress = latest;
    },
    async settle(outcome) {
      renewed();
      if (outcome.queueMs !== undefined) timings.set('queue', outcome.queueMs);
      if (outcome.firstTokenAt !== null) timings.set('first-token', outcome.firstTokenAt - startedAt);
      const { inquire = false } = outcome;
      const ending = { requestId, settlement: settlementOf(outcome, startedAt, now()), inquire };
      // Should nobody hear of it, the lease ends by itself, and the upstream's own account is written.
      await endings.tell(limiterName, ending, async (all) => await limiter().settle(all));
    },
  };
}

function settlementOf(outcome: Outcome, startedAt: number, endedAt: number): Settlement {
  const { firstTokenAt, finishReasons, queueMs: _, inquire: __, ...rest } = outcome;
  return {
    ...rest,
    finishReasons: [...finishReasons],
    latencyMs: endedAt - startedAt,
    firstTokenMs: firstTokenAt === null ? null : firstTokenAt - startedAt,
  };
}

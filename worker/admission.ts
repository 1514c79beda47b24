import { ApiError } from '../shared/errors.ts';
import type { FinishReason, Usage } from '../shared/generation.ts';
import type { Principal } from '../shared/tenant.ts';
import { refused } from './admission-refusal.ts';
import type { RequestContext } from './context.ts';
import {
  type Inquiry,
  LEASE_MS,
  type Progress,
  RENEW_MS,
  type Reservation,
  type ReservationRequest,
  type Settlement,
} from './limiter/protocol.ts';
import type { TenantLimiter } from './tenant-limiter.ts';
import { NO_USAGE } from './usage/usage-record.ts';

/** What a request may cost at most, estimated before it is tokenised. */
export interface Cost {
  readonly requests: 1;
  /** Estimated prompt tokens plus everything that may be generated. */
  readonly tokens: number;
  readonly promptTokens: number;
  readonly sequences: number;
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
  reserve(request: ReservationRequest): Promise<Reservation>;
  renew(requestId: string, progress: Progress): Promise<unknown>;
  settle(requestId: string, settlement: Settlement): Promise<unknown>;
  standing(inquiry: Inquiry): Promise<Record<string, string>>;
}

export function limiterOf(
  context: Pick<RequestContext, 'env'>,
  tenantId: string,
): DurableObjectStub<TenantLimiter> {
  return context.env.LIMITER.get(context.env.LIMITER.idFromName(tenantId));
}

/** Tenants' ids have no `@`. */
export function nearestLimiter(
  { env, region }: Pick<RequestContext, 'env' | 'region'>,
  tenantId: string,
): Limiter {
  if (region === null) return limiterOf({ env }, tenantId);
  return env.REGIONS.get(env.REGIONS.idFromName(`${tenantId}@${region}`));
}

const ATTEMPTS = 3;

/** Every call to the limiter may be repeated: it knows requests by their id. */
async function insistently<T>(call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call();
    } catch (thrown) {
      if (attempt === ATTEMPTS) throw thrown;
    }
  }
}

/**
 * Reserves requests, tokens and concurrency together, for the tenant and for the key; the answer will say what is left.
 * @throws ApiError 429; 401 or 403 for a key or tenant that was blocked a moment ago; 503 when nobody can decide
 */
export async function admit(principal: Principal, cost: Cost, context: RequestContext): Promise<Lease> {
  const { tenant, key } = principal;
  // A name of our own: the caller chooses its request id, and may choose the same one twice.
  const requestId = `${context.requestId}.${context.randomHex(8)}`;
  const limiter = nearestLimiter(context, tenant.id);
  const request: ReservationRequest = {
    requestId,
    tenantId: tenant.id,
    keyId: key.id,
    model: cost.model,
    tokens: cost.tokens,
    tenantLimits: tenant.limits,
    keyLimits: key.limits,
    leaseMs: LEASE_MS,
  };
  const ask = async (): Promise<Reservation> => await limiter.reserve(request);
  const reservation = await context.timings
    .measure('limit', () => insistently(ask))
    .catch(() => {
      // Letting everybody in would make the limits worthless in the very moment they are needed.
      throw new ApiError('server_is_overloaded', 'The limits of this tenant cannot be checked right now.', {
        headers: { 'retry-after': '1' },
      });
    });
  for (const [name, value] of Object.entries(reservation.headers)) context.answer.headers.set(name, value);
  if (!reservation.admitted) throw refused(reservation.refusal, principal, cost);
  return lease(limiter, requestId, context);
}

function lease(limiter: Limiter, requestId: string, { now, timings }: RequestContext): Lease {
  const startedAt = now();
  let progress: Parameters<Lease['watch']>[0] = () => ({ usage: NO_USAGE, upstream: null });
  // The timer dies with the request's context, and with it the signs of life.
  const renewal = setInterval(() => {
    limiter.renew(requestId, { ...progress(), leaseMs: LEASE_MS }).catch(() => {});
  }, RENEW_MS);
  return {
    id: requestId,
    watch(latest) {
      progress = latest;
    },
    async settle(outcome) {
      clearInterval(renewal);
      if (outcome.queueMs !== undefined) timings.set('queue', outcome.queueMs);
      if (outcome.firstTokenAt !== null) timings.set('first-token', outcome.firstTokenAt - startedAt);
      const settlement = settlementOf(outcome, startedAt, now());
      // Should this fail too, the lease ends by itself and writes what the last sign of life told.
      await insistently(() => limiter.settle(requestId, settlement)).catch(() => {});
    },
  };
}

function settlementOf(outcome: Outcome, startedAt: number, endedAt: number): Settlement {
  const { firstTokenAt, finishReasons, queueMs: _, ...rest } = outcome;
  return {
    ...rest,
    finishReasons: [...finishReasons],
    latencyMs: endedAt - startedAt,
    firstTokenMs: firstTokenAt === null ? null : firstTokenAt - startedAt,
  };
}

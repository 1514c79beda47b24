import type { ApiError } from '@continuo/shared/errors.ts';
import type { Principal } from '@continuo/shared/tenant.ts';
import { currentPrincipal, isActive } from '../auth/auth.ts';
import type { Claimant, Renewal, ReservationResult, Settlement, Spend } from '../env/limiter-protocol.ts';
import type { RequestContext, TenantLimiter } from '../http/request-context.ts';
import { costOf } from '../prices/price.ts';
import { isOverloaded } from '../timers/retry.ts';
import { NO_USAGE, spendOf, type UsageRecord } from '../usage/usage-record.ts';
import { Allowance } from './allowance.ts';
import { endUserOf } from './end-user.ts';
import { limitError, limiterOverloaded, type Refusal, unchecked } from './limit-errors.ts';
import { callHome } from './limiter-client.ts';
import { BUDGETS, type Budget, eachOf, RESOURCES } from './quota/budget.ts';
import { isSome } from './quota/local-budgets.ts';
import type { Subject } from './quota/state.ts';
import type { RequestCost, RequestTokens } from './request-cost.ts';

/** How a generation ended. Reported exactly once. */
export interface Outcome extends Pick<UsageRecord, 'usage' | 'errorCode' | 'finishReasons' | 'upstream'> {
  /** `cancelled`: the client disconnected. `failed`: the upstream or the Worker failed. */
  readonly status: 'completed' | 'failed' | 'cancelled';
  /** Unix milliseconds of the first generated token; null if there was none. */
  readonly firstTokenAt: number | null;
  /** Longest wait of a prompt in the upstream's queue, in milliseconds. */
  readonly queueMs?: number;
  /** The upstream may have generated more than the Worker saw: the limiter asks it first. */
  readonly inquire?: boolean;
}

/** What an admitted request holds until it is settled. */
export interface Reservation {
  /** Unique. The upstream keeps its usage account of the request under this id. */
  readonly id: string;
  /** From now on, renewals report what `progress` returns. It is billed if no settlement arrives. */
  watch(progress: () => Pick<Renewal, 'usage' | 'upstream'>): void;
  /** The tokens that the request may use; null if neither they nor money are limited. */
  readonly allowance: Pick<Allowance, 'reserved' | 'usable' | 'covers' | 'cover' | 'cached' | 'note'> | null;
  /**
   * The prompts have been counted: reserves more tokens if they are more than was estimated.
   * @throws ApiError 429 if they exceed a limit; then the caller settles; 503 if no limiter can be reached
   */
  begin(known: RequestTokens): Promise<void>;
  /** The error of a key revoked or expired meanwhile or a suspended tenant; null = the request goes on. */
  block(): Promise<ApiError | null>;
  /** To be called exactly once. The limiter learns it a moment later. */
  settle(outcome: Outcome): void;
}

/** Renewals per lifetime of a reservation; all but one may be lost. */
const RENEWALS = 3;

/**
 * Reserves requests, tokens, money and concurrency together, for the tenant and for the key. Also sets the
 * response's `x-ratelimit-*` headers.
 * @throws ApiError 429, also if the limiter is overloaded; 401 or 403 if the key or tenant was blocked
 *   recently; 503 if the
 * limiter fails
 */
export async function admit(
  principal: Principal,
  cost: RequestCost,
  context: RequestContext,
): Promise<Reservation> {
  const client = context.limiterOf(principal.tenant.id);
  const limited = limitsSpend(principal, context, cost);
  const first = spendFor(cost, limited ? cost.tokens : cost.most, cost);
  let claimant = claimantOf(principal, { ...cost, ...first }, context);
  let current = principal;
  const readAgain = async (): Promise<void> => {
    current = await currentPrincipal(principal, context);
    const { endUser = null } = claimant;
    claimant = claimantOf(current, { ...cost, ...first }, context);
    // The request is charged to its end user until its end, also if end users have no limits any more.
    claimant = { ...claimant, endUser: claimant.endUser ?? endUser };
  };
  const errorOf = (refusal: Refusal) =>
    limitError(refusal, principal, { model: cost.model, most: spendFor(cost, cost.most, cost) });
  const settled = async <T extends ReservationResult>(asked: Promise<T>): Promise<T> => {
    const result = await asked.catch((thrown: unknown) => {
      // The limiter is not called again for this request, because a limiter that fails may have too many
      // calls already.
      context.reply.limits = null;
      throw isOverloaded(thrown) ? limiterOverloaded(context.backoff.random()) : unchecked();
    });
    context.reply.limits = result.headers;
    if (!result.admitted) throw errorOf(result.refusal);
    return result;
  };
  const { requestId } = await context.timings.measure('limit', () =>
    settled(client.reserve(claimant, context)),
  );
  const { now, settings, backoff } = context;
  const allowance = new Allowance({
    reserved: first,
    tokens: cost,
    price: cost.price,
    // No reader waits for the text of a batch.
    now,
    waits: principal.tenant.waitForTokens || context.batchKey !== null,
    waitsUntil: now() + settings.REQUEST_TIMEOUT_MS,
    growHere: (more) => client.extend({ ...claimant, ...more }, requestId, false, context),
    growAtHome: (total) => client.raise({ ...claimant, ...total, requestId, raise: 'growth' }, context),
    errorOf,
    pause: (ms) => backoff.pause(ms),
  });
  const begin: Reservation['begin'] = async (known) => {
    if (!limited) return;
    const needed = spendFor(known, known.tokens, cost);
    const { reserved } = allowance;
    const missing = eachOf((name) => Math.max(0, needed[name] - reserved[name]));
    const more = { ...claimant, ...missing };
    if (isSome(missing) && !isSome(client.extend(more, requestId, true, context))) {
      await settled(client.raise({ ...claimant, ...needed, requestId, raise: 'prompt' }, context));
    }
    allowance.begin(known, needed);
  };
  const block = async (): Promise<ApiError | null> => {
    const { tenant, key } = current;
    if (tenant.suspended) return errorOf('suspended');
    const ask = () => callHome(context, tenant.id, (home) => home.blockOf(key.id));
    const block = isActive(key, now()) ? await context.recentBlock(key.id, ask) : 'revoked';
    return block && errorOf(block);
  };
  return {
    ...hold(client, requestId, { allowance, price: cost.price, onRenewal: readAgain }, context),
    allowance: limited ? allowance : null,
    begin,
    block,
  };
}

const claimantOf = (
  principal: Principal,
  { model, tokens, money, price }: Pick<Claimant, 'model' | 'tokens' | 'money' | 'price'>,
  { settings, caller }: RequestContext,
): Claimant => {
  const { tenant, key } = principal;
  return {
    tenantId: tenant.id,
    keyId: key.id,
    tenantLimits: tenant.limits,
    keyLimits: key.limits,
    model,
    tokens,
    money,
    price,
    ttlMs: settings.RESERVATION_TTL_MS,
    endUser: endUserOf(principal, caller.endUser),
  };
};

const hasLimit = (limits: Subject['limits'], resources: readonly Budget['resource'][]): boolean =>
  BUDGETS.some(
    ({ resource, limit }) =>
      limit !== null && resources.includes(resource) && (limits[limit] ?? null) !== null,
  );

/** Asks whether there is room for any request. Reserves nothing. Returns null if the limiter fails. */
export function probe(principal: Principal, context: RequestContext): Promise<ReservationResult | null> {
  const claimant = claimantOf(principal, { model: '', price: null, tokens: 1, money: 0 }, context);
  const client = context.limiterOf(principal.tenant.id);
  return context.timings.measure('limit', () => client.probe(claimant, context)).catch(() => null);
}

/**
 * Refuses a request that would exceed a limit whatever its body says, before it is read. Reserves nothing.
 * @throws ApiError 429; 401 or 403 if the key or tenant was blocked recently
 */
export async function requireRoom(principal: Principal, context: RequestContext): Promise<void> {
  if (![principal.tenant, principal.key].some(({ limits }) => hasLimit(limits, RESOURCES))) return;
  // If the limiter fails, the reservation will fail as well.
  const result = await probe(principal, context);
  if (result === null || result.admitted) return;
  context.reply.limits = result.headers;
  throw limitError(result.refusal, principal, { model: null });
}

/** Returns a number of tokens with the most that they cost. */
const spendFor = (
  { prompt }: Pick<RequestTokens, 'prompt'>,
  tokens: number,
  { price }: Pick<RequestCost, 'price'>,
): Spend => {
  const completionTokens = Math.max(0, tokens - prompt);
  return { tokens, money: costOf(price, { promptTokens: prompt, cachedTokens: 0, completionTokens }) };
};

/** Returns whether a limit of tokens applies to the request, or one of money if it costs any. */
const limitsSpend = (principal: Principal, { caller }: RequestContext, { price }: RequestCost): boolean =>
  [principal.tenant, principal.key, endUserOf(principal, caller.endUser)].some(
    (holder) => holder !== null && hasLimit(holder.limits, price === null ? ['tokens'] : ['tokens', 'money']),
  );

interface Held {
  readonly allowance: Allowance;
  readonly price: RequestCost['price'];
  readonly onRenewal: () => Promise<void>;
}

function hold(
  client: TenantLimiter,
  requestId: string,
  { allowance, price, onRenewal }: Held,
  context: RequestContext,
): Pick<Reservation, 'id' | 'watch' | 'settle'> {
  const { now, timings, timers } = context;
  const startedAt = now();
  const ttlMs = context.settings.RESERVATION_TTL_MS;
  let progress: Parameters<Reservation['watch']>[0] = () => ({ usage: NO_USAGE, upstream: null });
  // The timer ends with the request's context. Without renewals, the reservation expires.
  const renew = (): void => {
    client.renew(requestId, { ...progress(), ttlMs }, context);
    void onRenewal();
    cancelRenewal = timers.after(ttlMs / RENEWALS, renew);
  };
  let cancelRenewal = timers.after(ttlMs / RENEWALS, renew);
  return {
    id: requestId,
    watch(latest) {
      progress = latest;
    },
    settle(outcome) {
      cancelRenewal();
      allowance.end();
      const spent = spendOf(price, outcome.usage);
      const unused = eachOf((name) => allowance.reserved[name] - spent[name]);
      if (outcome.queueMs !== undefined) timings.set('queue', outcome.queueMs);
      if (outcome.firstTokenAt !== null) timings.set('first-token', outcome.firstTokenAt - startedAt);
      const { inquire = false } = outcome;
      const settlement = { ...settlementOf(outcome, startedAt, now()), endUser: context.caller.endUser };
      client.settle({ requestId, settlement, inquire }, unused, context);
    },
  };
}

function settlementOf(outcome: Outcome, startedAt: number, endedAt: number): Omit<Settlement, 'endUser'> {
  const { firstTokenAt, finishReasons, queueMs: _, inquire: __, ...rest } = outcome;
  return {
    ...rest,
    finishReasons: [...finishReasons],
    latencyMs: endedAt - startedAt,
    firstTokenMs: firstTokenAt === null ? null : firstTokenAt - startedAt,
  };
}

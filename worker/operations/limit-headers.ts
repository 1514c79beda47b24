import { Claim, hasLimit } from '@continuo/limits/claim.ts';
import { limitError } from '@continuo/limits/limit-errors.ts';
import { RESOURCES } from '@continuo/limits/quota/budget.ts';
import type { ReservationResult } from '@continuo/limits/quota/protocol.ts';
import { toApiError } from '@continuo/shared/errors.ts';
import type { Principal } from '@continuo/shared/tenant.ts';
import { authenticate } from '../auth/auth.ts';
import type { RequestContext } from '../http/request-context.ts';
import type { RouteHandler } from '../http/router.ts';

const hasLimitHeaders = ({ headers }: Response): boolean =>
  headers.has('x-ratelimit-limit-requests') || headers.has('x-ratelimit-limit-tokens');

const isLimited = ({ tenant, key }: Principal): boolean =>
  [tenant.limits, key.limits].some(
    ({ requestsPerMinute, tokensPerMinute }) => requestsPerMinute !== null || tokensPerMinute !== null,
  );

/** Asks whether there is room for any request. Reserves nothing. Returns null if the limiter fails. */
function probe(principal: Principal, context: RequestContext): Promise<ReservationResult | null> {
  const claim = new Claim(principal, { model: '', price: null, prompt: 1, tokens: 1, most: 1 }, context);
  const asked = () => claim.limiter.probe(claim.of({ tokens: 1, money: 0 }), context);
  return context.timings.measure('limit', asked).catch(() => null);
}

/**
 * Refuses a request that would exceed a limit whatever its body says, before it is read. Reserves nothing.
 * @throws ApiError 429; 401 or 403 if the key or tenant was blocked recently
 */
async function requireRoom(principal: Principal, context: RequestContext): Promise<void> {
  if (![principal.tenant, principal.key].some(({ limits }) => hasLimit(limits, RESOURCES))) return;
  // If the limiter fails, the reservation will fail as well.
  const result = await probe(principal, context);
  if (result === null || result.admitted) return;
  context.reply.limits = result.headers;
  throw limitError(result.refusal, principal, { model: null });
}

/** Reads the caller's `x-ratelimit-*` headers if no reservation has returned them. Changes no counter. */
async function readLimits(context: RequestContext): Promise<void> {
  const { reply } = context;
  const { principal } = context.caller;
  const unknown = reply.limits !== null && Object.keys(reply.limits).length === 0;
  if (!unknown || principal === null || !isLimited(principal)) return;
  const probed = await probe(principal, context);
  // The response is valid without these headers.
  reply.limits = probed?.headers ?? {};
}

/** To read and parse a smaller body costs less than another call of the limiter. */
const LARGE_BODY_BYTES = 16_384;

const isLarge = ({ method, headers }: Request): boolean =>
  method === 'POST' && !(Number(headers.get('content-length') ?? Infinity) < LARGE_BODY_BYTES);

/**
 * Adds the `x-ratelimit-*` headers to every response of the handler to an authenticated caller. Refuses a
 * large body before it is read if the caller has no room for any request.
 */
export function withLimitHeaders(handler: RouteHandler): RouteHandler {
  return async (request, context, argument) => {
    try {
      if (isLarge(request)) await requireRoom(await authenticate(request, context, 'completions'), context);
      const response = await handler(request, context, argument);
      // A resumable stream already has the headers of its inner request.
      if (!hasLimitHeaders(response)) await readLimits(context);
      return response;
    } catch (thrown) {
      // The limiter may have reported that the key is revoked. Its limits are then not shown.
      if (toApiError(thrown).status !== 401) await readLimits(context);
      throw thrown;
    }
  };
}

import { toApiError } from '@continuo/shared/errors.ts';
import type { Principal } from '@continuo/shared/tenant.ts';
import { authenticate } from '../auth/auth.ts';
import type { RequestContext } from '../http/request-context.ts';
import type { RouteHandler } from '../http/router.ts';
import { limiterOf } from './limiter-client.ts';
import { requireRoom } from './reservation.ts';

const hasLimitHeaders = ({ headers }: Response): boolean =>
  headers.has('x-ratelimit-limit-requests') || headers.has('x-ratelimit-limit-tokens');

const isLimited = ({ tenant, key }: Principal): boolean =>
  [tenant.limits, key.limits].some(
    ({ requestsPerMinute, tokensPerMinute }) => requestsPerMinute !== null || tokensPerMinute !== null,
  );

/** Reads the caller's `x-ratelimit-*` headers if no reservation has returned them. Changes no counter. */
async function readLimits(context: RequestContext): Promise<void> {
  const { caller, answer, timings } = context;
  const { principal } = caller;
  const unknown = answer.limits !== null && Object.keys(answer.limits).length === 0;
  if (!unknown || principal === null || !isLimited(principal)) return;
  const { tenant, key } = principal;
  answer.limits = context.limiters.of(tenant.id).rateLimitHeaders(key.id, context.now());
  if (answer.limits !== null) return;
  const holder = { tenantId: tenant.id, keyId: key.id, tenantLimits: tenant.limits, keyLimits: key.limits };
  answer.limits = await timings
    .measure('limit', async () => await limiterOf(context, tenant.id).rateLimitHeaders(holder))
    // The response is valid without these headers.
    .catch(() => ({}));
}

/** To read and parse a smaller body costs less than another call of the limiter. */
const LARGE_BODY_BYTES = 16_384;

const isLarge = ({ method, headers }: Request): boolean =>
  method === 'POST' && !(Number(headers.get('content-length') ?? Infinity) < LARGE_BODY_BYTES);

/**
 * Adds the `x-ratelimit-*` headers to every response of the handler to an authenticated caller. Refuses a large body before
 * it is read if the caller has no room for any request.
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

import { toApiError } from '../../shared/errors.ts';
import type { Principal } from '../../shared/tenant.ts';
import type { RequestContext } from '../context.ts';
import type { Handler } from '../routes.ts';
import { nearestLimiter } from './admission.ts';

const bears = ({ headers }: Response): boolean =>
  headers.has('x-ratelimit-limit-requests') || headers.has('x-ratelimit-limit-tokens');

const isLimited = ({ tenant, key }: Principal): boolean =>
  [tenant.limits, key.limits].some(
    ({ requestsPerMinute, tokensPerMinute }) => requestsPerMinute !== null || tokensPerMinute !== null,
  );

/** How the caller's limits stand, for an answer that no reservation has told of them. Changes no counter. */
async function tell(context: RequestContext): Promise<void> {
  const { caller, answer, timings } = context;
  const { principal } = caller;
  const told = Object.keys(answer.limits).length > 0;
  if (told || principal === null || !isLimited(principal)) return;
  const { tenant, key } = principal;
  const inquiry = { tenantId: tenant.id, keyId: key.id, tenantLimits: tenant.limits, keyLimits: key.limits };
  answer.limits = await timings
    .measure('limit', async () => await nearestLimiter(context, tenant.id).standing(inquiry))
    // The answer is as it is, whether or not anybody can say how the limits stand.
    .catch(() => ({}));
}

/** The handler; whatever it answers to a caller it knows bears the headers of the caller's limits. */
export function tellingLimits(handler: Handler): Handler {
  return async (request, context, argument) => {
    try {
      const answer = await handler(request, context, argument);
      // A resumable stream brings those of the request it has made itself.
      if (!bears(answer)) await tell(context);
      return answer;
    } catch (thrown) {
      // A key that was revoked a moment ago is a stranger's.
      if (toApiError(thrown).status !== 401) await tell(context);
      throw thrown;
    }
  };
}

import { ApiError, retryAfter } from '../../shared/errors.ts';
import type { Scope } from '../../shared/tenant.ts';

const CHALLENGE = { 'www-authenticate': 'Bearer' };

export const missingKey = (): ApiError =>
  new ApiError(
    'missing_api_key',
    "You didn't provide an API key. Send it as a header: Authorization: Bearer YOUR_KEY.",
    { headers: CHALLENGE },
  );

/** One answer for malformed, unknown, wrong, expired and revoked keys: it tells a stranger nothing. */
export const invalidKey = (): ApiError =>
  new ApiError('invalid_api_key', 'Incorrect API key provided.', { headers: CHALLENGE });

export const insufficientScope = (scope: Scope): ApiError =>
  new ApiError('insufficient_scope', `This key has no right to use '${scope}'.`);

export const suspended = (): ApiError =>
  new ApiError('tenant_suspended', 'This tenant is suspended. Its operator knows why.');

/** The flood shield's answer; it counts per place and approximately, so the wait is a fixed one. */
export const flooded = (): ApiError =>
  new ApiError('rate_limit_exceeded', 'Too many requests from this address or key.', {
    headers: { ...retryAfter(10_000), 'x-should-retry': 'true' },
  });

import { ApiError, retryAfter } from '@continuo/shared/errors.ts';
import { CHALLENGE } from '@continuo/shared/key-errors.ts';
import type { Scope } from '@continuo/shared/tenant.ts';

export const missingKey = (): ApiError =>
  new ApiError(
    'missing_api_key',
    "You didn't provide an API key. Send it as a header: Authorization: Bearer YOUR_KEY.",
    { headers: CHALLENGE },
  );

export const insufficientScope = (scope: Scope): ApiError =>
  new ApiError('insufficient_scope', `This API key lacks the scope '${scope}'. Use a key that has it.`);

export const addressNotAllowed = (): ApiError =>
  new ApiError('address_not_allowed', 'This API key may not be used from this network address.');

export const insufficientRole = (role: string | null): ApiError =>
  new ApiError(
    'insufficient_scope',
    `The role '${role}' of this admin key may not do this. Use another key.`,
  );

/** The flood limits count approximately and per place, so the wait is fixed: 10 s. */
export const flooded = (): ApiError =>
  new ApiError('rate_limit_exceeded', 'Too many requests from this address or API key. Retry in 10 s.', {
    headers: { ...retryAfter(10_000), 'x-should-retry': 'true' },
  });

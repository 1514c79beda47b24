import { ApiError } from './errors.ts';

/** Errors of keys and tenants that are no longer valid. */

export const CHALLENGE = { 'www-authenticate': 'Bearer' };

/** The same error for malformed, unknown, wrong, expired and revoked keys, to reveal nothing about a key. */
export const invalidKey = (): ApiError =>
  new ApiError('invalid_api_key', 'Incorrect API key provided.', { headers: CHALLENGE });

export const suspended = (): ApiError =>
  new ApiError('tenant_suspended', 'This account is suspended. Contact the operator of this endpoint.');

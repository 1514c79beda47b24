import { ApiError } from '../../shared/errors.ts';
import { messageOf } from '../../shared/message-of.ts';
import { jsonResponse } from './responses.ts';
import { SECURITY_HEADERS } from './security-headers.ts';

/**
 * The answer of a deployment whose variables or bindings are wrong. The log names what is; callers learn only that they
 * are not at fault, and that asking again does not help.
 */
export function misconfigured(thrown: unknown): Response {
  const message = messageOf(thrown);
  console.error(JSON.stringify({ event: 'misconfigured', message }));
  const error = new ApiError('internal_error', 'This server is not set up correctly.');
  return jsonResponse(error.envelope(), {
    status: error.status,
    headers: { ...SECURITY_HEADERS, 'x-should-retry': 'false' },
  });
}

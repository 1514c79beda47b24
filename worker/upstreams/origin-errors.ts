import * as z from 'zod';
import { ApiError, isErrorCode } from '../../shared/errors.ts';
import { errorBody } from './error-body.ts';
import { malformed } from './upstream-errors.ts';

const envelope = z.object({
  error: z.object({ message: z.string(), param: z.string().nullish(), code: z.string() }),
});

/**
 * What the caller should see of an answer that is not 200: the origin's own findings about the request as they are,
 * its overload and its timeouts with the time to wait, and everything else as our failure (502).
 */
export async function errorOfAnswer(response: Response): Promise<ApiError> {
  const body = envelope.safeParse(await errorBody(response));
  // 401 and 403 are about our signature, never about the caller's key.
  const ours = response.status === 401 || response.status === 403 || response.status === 500;
  if (!body.success || ours || !isErrorCode(body.data.error.code)) return malformed();
  const { code, message, param } = body.data.error;
  return new ApiError(code, message, { param: param ?? null, headers: waitingTime(response) });
}

const WAIT_HEADERS = ['retry-after', 'retry-after-ms', 'x-should-retry'];

/** How long the origin says to wait, if it does, and whether at all. */
function waitingTime(response: Response): Record<string, string> {
  const named = WAIT_HEADERS.flatMap((name) => {
    const value = response.headers.get(name);
    return value === null ? [] : [[name, value]];
  });
  return Object.fromEntries(named);
}

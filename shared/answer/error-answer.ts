import { ApiError, isErrorCode } from '../errors.ts';
import { SSE_DONE, sseData } from '../framing.ts';
import type { EventOf } from '../generation.ts';
import type { ErrorCodeForm } from './answer-form.ts';

/** The error that a generation has ended with, as callers may see it. */
export function errorOfEvent({ code, message, param }: EventOf<'error'>): ApiError {
  return new ApiError(isErrorCode(code) ? code : 'upstream_error', message, { param });
}

/** An error's body, its code as the dialect has it. */
export function errorBody(error: ApiError, codes: ErrorCodeForm): unknown {
  const envelope = error.envelope();
  return codes === 'string' ? envelope : { error: { ...envelope.error, code: error.status } };
}

/** How a stream ends that has failed: one error event and then [DONE], never a clean end. */
export const failedEnd = (error: ApiError, codes: ErrorCodeForm): string =>
  sseData(errorBody(error, codes)) + SSE_DONE;

import { ApiError, type ErrorCode } from '@continuo/shared/errors.ts';
import type { Verdict } from './upstream-health.ts';

/** Errors of the client for failures of any kind of upstream. */

const upstreamError = (message: string): ApiError => new ApiError('upstream_error', message);

/** The server runs, but has not loaded a model yet. */
export const loading = (seconds = 5): ApiError =>
  new ApiError('model_loading', 'The model is still loading.', {
    headers: { 'retry-after': String(seconds) },
  });

/** The response does not follow the protocol. */
export const malformed = (): ApiError =>
  upstreamError('The model server gave an answer that could not be read.');

/** The connection broke before the terminal event. */
export const interrupted = (): ApiError =>
  upstreamError('The connection to the model server was lost before the completion had finished.');

/** There was no response. */
export function unreachable(how: 'connection' | 'timeout'): ApiError {
  return how === 'connection'
    ? upstreamError('The model server could not be reached.')
    : new ApiError('upstream_timeout', 'The model server did not answer in time.');
}

/** The stream had no event and no heartbeat for too long. */
export const silent = (): ApiError =>
  new ApiError('upstream_timeout', 'The model server stopped sending events.');

/** Failures of the upstream; another one may succeed. */
export const UPSTREAM_FAILURES: ReadonlySet<string> = new Set<ErrorCode>([
  'upstream_error',
  'upstream_timeout',
]);
/** The upstream is busy. Another one may succeed, but this does not count as a failure. */
export const BUSY: ReadonlySet<string> = new Set<ErrorCode>([
  'server_is_overloaded',
  'model_loading',
  'model_unavailable',
]);
/** Errors that may come from the Worker, before the request was sent. */
const NOT_SENT: ReadonlySet<string> = new Set<ErrorCode>(['unsupported_parameter', 'unsupported_endpoint']);

export const codeOf = (thrown: unknown): string =>
  thrown instanceof ApiError ? thrown.code : 'internal_error';

/** Returns what an error code means for the upstream's health. */
export function verdictOf(code: string): Verdict {
  if (UPSTREAM_FAILURES.has(code)) return 'failure';
  return BUSY.has(code) || NOT_SENT.has(code) ? 'unknown' : 'success';
}

/** Returns the reason of an abort if it is for the client: it is better than what the call throws. */
export const causeOf = ({ reason }: AbortSignal, thrown: unknown): unknown =>
  reason instanceof ApiError ? reason : thrown;

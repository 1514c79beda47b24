import { ApiError } from '@continuo/shared/errors.ts';

/** Errors of the client for failures of any kind of upstream. */

const upstreamError = (message: string): ApiError => new ApiError('upstream_error', message);

/** The server runs, but has not loaded a model yet. */
export const loading = (seconds = 5): ApiError =>
  new ApiError('model_loading', 'The model is still loading.', {
    headers: { 'retry-after': String(seconds) },
  });

/** The answer does not follow the protocol. */
export const malformed = (): ApiError =>
  upstreamError('The model server gave an answer that could not be read.');

/** The connection broke before the terminal event. */
export const interrupted = (): ApiError =>
  upstreamError('The connection to the model server was lost before the completion had finished.');

/** There was no answer. */
export function unreachable(how: 'connection' | 'timeout'): ApiError {
  return how === 'connection'
    ? upstreamError('The model server could not be reached.')
    : new ApiError('upstream_timeout', 'The model server did not answer in time.');
}

/** The stream had no event and no heartbeat for too long. */
export const silent = (): ApiError =>
  new ApiError('upstream_timeout', 'The model server stopped sending events.');

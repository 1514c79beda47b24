import { ApiError } from '../../shared/errors.ts';

/** What callers see of an upstream that fails, whatever its kind. */

const upstreamError = (message: string): ApiError => new ApiError('upstream_error', message);

/** The server is up, but has no model yet. */
export const loading = (): ApiError =>
  new ApiError('model_loading', 'The model is still loading.', { headers: { 'retry-after': '5' } });

/** It spoke, but not the protocol it should. */
export const malformed = (): ApiError =>
  upstreamError('The model server gave an answer that could not be read.');

/** It stopped speaking before it had finished. */
export const interrupted = (): ApiError =>
  upstreamError('The connection to the model server was lost before the completion had finished.');

/** No answer at all. */
export function unreachable(how: 'connection' | 'timeout'): ApiError {
  return how === 'connection'
    ? upstreamError('The model server could not be reached.')
    : new ApiError('upstream_timeout', 'The model server did not answer in time.');
}

/** It fell silent in the middle of a stream. */
export const silent = (): ApiError =>
  new ApiError('upstream_timeout', 'The model server stopped sending events.');

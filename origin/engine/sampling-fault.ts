import { ApiError, toApiError } from '../../shared/errors.ts';
import { InvalidLogitsError, NoCandidatesError } from '../sampling/errors.ts';

/** What the caller is told when no token could be sampled. */
export function samplingFault(thrown: unknown): ApiError {
  if (thrown instanceof NoCandidatesError) {
    return new ApiError('invalid_value', 'Every token is forbidden by the parameters of the request.');
  }
  if (thrown instanceof InvalidLogitsError) {
    return new ApiError('upstream_error', 'The model gave no valid probabilities.');
  }
  return toApiError(thrown);
}

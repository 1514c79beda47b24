import { ApiError } from './errors.ts';

/** Tokens that must fit after the prompt: at least one if the completion runs to the end of the context (−1). */
export const requiredTokens = (maxTokens: number): number => (maxTokens === -1 ? 1 : maxTokens);

/**
 * Returns the error of a prompt that does not fit. Clients search for the words "maximum context length is X tokens".
 * @param param the prompt's name in the error
 */
export function contextExceeded(
  contextLength: number,
  promptTokens: number,
  maxTokens: number,
  param: string,
): ApiError {
  const completion = requiredTokens(maxTokens);
  return new ApiError(
    'context_length_exceeded',
    `This model's maximum context length is ${contextLength} tokens, however you requested ` +
      `${promptTokens + completion} tokens (${promptTokens} in your prompt; ${completion} for the completion). ` +
      'Please reduce your prompt or the completion length.',
    { param },
  );
}

import { contextExceeded, requiredTokens } from '@continuo/shared/errors.ts';
import type { GenerationRequest } from '@continuo/shared/generation.ts';
import type { TokenLimit } from '@continuo/shared/sampling.ts';

/** How prompt and completion share the context. Pure. */

type LengthFields = Pick<
  GenerationRequest,
  'maxTokens' | 'contextOverflow' | 'truncatePromptTokens' | 'infill'
>;

/** At most this part of the context is kept free for the text of an infill that cuts its own prompt. */
const MAX_INFILL_SHARE = 4;

/** Returns the most tokens that a cut prompt keeps; null = the prompt is never cut. */
export function promptBudget(
  { maxTokens, truncatePromptTokens, infill }: LengthFields,
  contextLength: number,
): number | null {
  if (truncatePromptTokens === null && infill !== undefined) {
    const most = Math.floor(contextLength / MAX_INFILL_SHARE);
    return contextLength - (maxTokens === 'end' ? most : Math.min(maxTokens, most));
  }
  if (truncatePromptTokens === null || truncatePromptTokens >= 0) return truncatePromptTokens;
  return contextLength - Math.min(requiredTokens(maxTokens), contextLength - 1);
}

/**
 * Returns the number of tokens to generate after a prompt of `promptTokens`.
 * @param param the prompt's name in the error
 * @throws ApiError context_length_exceeded if the prompt does not fit, or if less than asked fits and
 *   `contextOverflow` is `error`
 */
export function completionBudget(
  { maxTokens, contextOverflow, truncatePromptTokens }: LengthFields,
  promptTokens: number,
  contextLength: number,
  param: string,
): number {
  const room = contextLength - promptTokens;
  // Of a text whose cut end does not fit either, not all is encoded.
  const count = (truncatePromptTokens ?? 0) > contextLength && room < 0 ? 'at-least' : 'exact';
  const exceeded = () => contextExceeded(contextLength, promptTokens, maxTokens, param, count);
  const mustFit = contextOverflow === 'error' ? requiredTokens(maxTokens) : 0;
  if (room < mustFit) throw exceeded();
  return maxTokens === 'end' ? room : Math.min(maxTokens, room);
}

/**
 * Refuses a context that leaves no room for a continuation.
 * @throws ApiError context_length_exceeded
 */
export function refuseFullContext(contextTokens: number, contextLength: number): void {
  if (contextTokens < contextLength) return;
  throw contextExceeded(contextLength, contextTokens + 1, 0, 'prompt', 'at-least');
}

/** A text is encoded this many times further than kept tokens reach, so that the cut does not change them. */
const MARGIN = 4;

/** Returns the part of a text that is enough for `budget` tokens of its start or end. */
export function reachableText(
  text: string,
  kept: 'start' | 'end',
  longestSpan: number,
  budget: number,
): string {
  const units = MARGIN * Math.max(budget, 1) * longestSpan;
  if (text.length <= units) return text;
  return kept === 'start' ? text.slice(0, units) : text.slice(-units);
}

/**
 * Refuses a text that is too long whatever its tokens are, before it is encoded.
 * @throws ApiError context_length_exceeded
 */
export function refuseHopelessText(
  text: string,
  longestSpan: number,
  contextLength: number,
  maxTokens: TokenLimit,
  param: string,
): void {
  const minTokens = Math.ceil(text.length / longestSpan);
  if (minTokens > contextLength)
    throw contextExceeded(contextLength, minTokens, maxTokens, param, 'at-least');
}

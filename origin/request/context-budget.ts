import { ApiError } from '../../shared/errors.ts';
import type { GenerationRequest } from '../../shared/generation.ts';

/** How prompt and completion share the context; pure. */

type Wishes = Pick<GenerationRequest, 'maxTokens' | 'contextOverflow' | 'truncatePromptTokens'>;

/** Most tokens the prompt may keep when it is cut; null = the prompt is never cut. */
export function promptBudget({ maxTokens, truncatePromptTokens }: Wishes, context: number): number | null {
  if (truncatePromptTokens === null || truncatePromptTokens >= 0) return truncatePromptTokens;
  return context - Math.min(leastTokens(maxTokens), context - 1);
}

/** Tokens there must be room for: text that runs to the end of the context is one at least. */
const leastTokens = (maxTokens: number): number => (maxTokens === -1 ? 1 : maxTokens);

/**
 * Tokens to generate beside a prompt of `promptTokens`.
 * @throws ApiError context_length_exceeded when the prompt leaves no room, or less than asked and that is an error
 */
export function completionBudget(
  { maxTokens, contextOverflow }: Wishes,
  promptTokens: number,
  context: number,
): number {
  const room = context - promptTokens;
  if (maxTokens === 0 && room >= 0) return 0;
  if (room < 1) throw contextExceeded(context, promptTokens, maxTokens);
  if (maxTokens === -1) return room;
  if (maxTokens > room && contextOverflow === 'error')
    throw contextExceeded(context, promptTokens, maxTokens);
  return Math.min(maxTokens, room);
}

/** The words "maximum context length is X tokens" are what clients search for. */
function contextExceeded(context: number, promptTokens: number, maxTokens: number): ApiError {
  const completion = leastTokens(maxTokens);
  return new ApiError(
    'context_length_exceeded',
    `This model's maximum context length is ${context} tokens, however you requested ` +
      `${promptTokens + completion} tokens (${promptTokens} in your prompt; ${completion} for the completion). ` +
      'Please reduce your prompt or the completion length.',
    { param: 'prompt' },
  );
}

/** A text is read this many times further than the kept tokens can reach, so that the cut does not change them. */
const MARGIN = 4;

/** The part of a text from whose start or end `budget` tokens are kept: nobody tokenises megabytes for one page. */
export function reachable(text: string, kept: 'start' | 'end', longestSpan: number, budget: number): string {
  const units = MARGIN * Math.max(budget, 1) * longestSpan;
  if (text.length <= units) return text;
  return kept === 'start' ? text.slice(0, units) : text.slice(-units);
}

/**
 * Refuses a text that is too long whatever its tokens are, before the work of tokenising it.
 * @throws ApiError context_length_exceeded
 */
export function refuseHopeless(text: string, longestSpan: number, context: number, maxTokens: number): void {
  const least = Math.ceil(text.length / longestSpan);
  if (least > context) throw contextExceeded(context, least, maxTokens);
}

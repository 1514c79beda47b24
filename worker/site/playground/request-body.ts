import type { Parameters } from '../api/request-field.ts';
import { LOGPROBS } from '../api/whole-choices.ts';
import type { EditorContent } from '../editor/text-editor.ts';

/** Returns what of a text goes into `prompt` and `suffix`. With a mark, it is an infill. */
export function promptOf({ text, mark }: Pick<EditorContent, 'text' | 'mark'>): {
  readonly prompt: string;
  readonly suffix?: string;
} {
  return mark === null ? { prompt: text } : { prompt: text.slice(0, mark), suffix: text.slice(mark) };
}

/**
 * Returns the body of the request that completes a text.
 * @param heals whether the end of a prompt is healed if the parameters do not say it
 */
export function requestBody(
  model: string,
  content: Pick<EditorContent, 'text' | 'mark'>,
  parameters: Parameters,
  heals = false,
): Record<string, unknown> {
  const logprobs = 'logprobs' in parameters ? parameters.logprobs : LOGPROBS;
  return {
    model,
    ...promptOf(content),
    ...(heals && { token_healing: true }),
    ...parameters,
    ...(logprobs === null ? { logprobs: null } : { logprobs, return_token_ids: true }),
  };
}

import type { Parameters } from '../api/request-field.ts';
import { TOKEN_FIELDS } from '../api/whole-choices.ts';
import type { EditorContent } from '../editor/text-editor.ts';

/** Returns what of a text goes into `prompt` and `suffix`. With a mark, it is an infill. */
export function promptOf({ text, mark }: Pick<EditorContent, 'text' | 'mark'>): {
  readonly prompt: string;
  readonly suffix?: string;
} {
  return mark === null ? { prompt: text } : { prompt: text.slice(0, mark), suffix: text.slice(mark) };
}

/**
 * Fields that the page sends unless the visitor changes them.
 * @param heals whether the model can heal a prompt
 */
export const pageFields = (heals: boolean): Parameters => ({
  ...(heals && { token_healing: true }),
  ...TOKEN_FIELDS,
});

/** Returns the fields that are sent. Null in the visitor's parameters leaves out what the page would send. */
export const sentFields = (preset: Parameters, parameters: Parameters): Parameters =>
  Object.fromEntries(Object.entries({ ...preset, ...parameters }).filter(([, value]) => value !== null));

/** Returns the parameters with another value of a field; undefined = the field is not sent. */
export function withField(preset: Parameters, all: Parameters, name: string, value: unknown): Parameters {
  const { [name]: _, ...others } = all;
  return value === preset[name] ? others : { ...others, [name]: value ?? null };
}

/** Returns the body of the request that completes a text. */
export const requestBody = (
  model: string,
  content: Pick<EditorContent, 'text' | 'mark'>,
  fields: Parameters,
): Record<string, unknown> => ({ model, ...promptOf(content), ...fields });

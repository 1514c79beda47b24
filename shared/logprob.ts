import * as z from 'zod';
import { ApiError } from './errors.ts';

/** Stands for −∞ and all lower values, because JSON has no infinities. */
export const LOWEST_LOGPROB = -9_999;

/** Upper limit of top logprobs per token. */
export const MAX_TOP_LOGPROBS = 20;

/** Upper limit of ids whose logprobs a request may list. */
export const MAX_LISTED_LOGPROBS = 128;

/** How the logprobs of many tokens at one position are encoded. */
const logprobRowFormat = z.object({
  /** Of the base64 values; little-endian, as are the ids. */
  encoding: z.enum(['float32', 'float16']),
  /** Only the smallest set of tokens with at least this probability; absent = the whole vocabulary. */
  topP: z.number().gt(0).lt(1).optional(),
});
export type LogprobRowFormat = z.infer<typeof logprobRowFormat>;

/** The rows of one request. */
export const logprobRows = logprobRowFormat.extend({
  /** Also for the tokens of the prompts. */
  prompt: z.boolean(),
  /** Most base64 characters of all rows of the answer. */
  maxCharacters: z.int().min(0),
});
export type LogprobRows = z.infer<typeof logprobRows>;

export const logprobRow = z.object({
  /** base64 of the logprobs, in the order of the ids. */
  logprobs: z.string(),
  /** base64 of the token ids as int32, ascending; absent = all ids from 0 on. */
  ids: z.string().optional(),
});
export type LogprobRow = z.infer<typeof logprobRow>;

/** Returns the base64 characters of `bytes` bytes. */
const base64Length = (bytes: number): number => 4 * Math.ceil(bytes / 3);

/** Returns the characters of a row of the whole vocabulary. */
export const wholeRowLength = (vocabularySize: number, { encoding }: LogprobRowFormat): number =>
  base64Length(vocabularySize * (encoding === 'float32' ? 4 : 2));

/** Each choice has the rows of its prompt. @param required what the answer needs; null = too large */
export function rowsTooLarge(maxCharacters: number, required: number | null): ApiError {
  const needed = required === null ? '' : `, and this request may need ${required}`;
  const message = `Invalid 'logprobs_format': the rows of an answer may have at most ${maxCharacters} base64 characters${needed}. Set 'top_p' in it, or lower 'max_tokens' or the length of the prompt.`;
  return new ApiError('invalid_value', message, { param: 'logprobs_format' });
}

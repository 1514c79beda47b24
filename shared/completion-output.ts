import * as z from 'zod';
import { MAX_IMAGES } from './generation.ts';
import { characters, DOCUMENTED_AS, flag, integer, list, optional } from './json-fields.ts';
import { type LogprobRows, MAX_LISTED_LOGPROBS, MAX_TOP_LOGPROBS } from './logprob.ts';

/** The public fields for the response, the treatment of the prompt, and caches. */

const salt = (description: string) => optional(characters(256), description);

/** Number of alternatives. Only the dialect knows the maximum and names it in its error. */
const count = z
  .number('integer')
  .min(0, 'integer')
  .refine(Number.isInteger, 'integer')
  .meta({ [DOCUMENTED_AS]: integer(0, MAX_TOP_LOGPROBS) });

/** `true` means the number in top_logprobs, and `false` none. */
const alternatives = z.union([count, z.boolean()]);

/** Some clients write an absent number as `false`. */
const countOrNone = z.union([count, z.literal(false)]);

const flatImages = list(z.string(), { max: MAX_IMAGES });
const listsOfImages = list(flatImages, { max: 256 }).refine((lists) => lists.flat().length <= MAX_IMAGES, {
  error: `Invalid 'images': too long. Expected at most ${MAX_IMAGES} images in total.`,
  params: { code: 'array_above_max_length' },
});
const images = z.union([flatImages, listsOfImages]);

/** Number of prompt tokens to keep; −1 = as many as fit. */
const keptTokens = integer(-1).refine((count) => count !== 0, {
  message: "Invalid 'truncate_prompt_tokens': expected -1 or a value >= 1, but got 0 instead.",
  params: { code: 'integer_below_min_value' },
});

export const logprobsFormat = z.strictObject({
  encoding: z.enum(['float32', 'float16']).describe('Type of the base64 values, little-endian.'),
  top_p: optional(
    z.number().gt(0).lt(1),
    'Only the fewest tokens that have this probability together. Default: all.',
  ),
});

/** Returns the wire form of a request's rows; absent if it wants none. */
export const logprobRowsOf = (
  format: z.output<typeof logprobsFormat> | null | undefined,
  prompt: boolean,
  maxCharacters: number,
): { logprobRows?: LogprobRows } =>
  format
    ? {
        logprobRows: {
          encoding: format.encoding,
          ...(format.top_p && { topP: format.top_p }),
          prompt,
          maxCharacters,
        },
      }
    : {};

export const outputFields = {
  echo: flag('Puts the prompt before the completion.'),
  echo_last: optional(integer(0), 'Puts the last tokens of the prompt before the completion.'),
  logprobs: optional(
    alternatives,
    'Number of alternatives per token in the logprobs. true uses the number in top_logprobs; false returns no logprobs.',
  ),
  top_logprobs: optional(countOrNone, 'Alias of logprobs.'),
  n_probs: optional(countOrNone, 'Alias of logprobs, except that 0 returns no logprobs.'),
  prompt_logprobs: optional(
    countOrNone,
    'Number of alternatives per prompt token; false returns none. Not available with stream.',
  ),
  prompt_logprob_start: optional(
    integer(-1),
    'Position of the prompt after which its tokens have logprobs; they are null before. -1 means the last. Default: 0.',
  ),
  logprob_start_len: optional(integer(-1), 'Alias of prompt_logprob_start.'),
  return_tokens_as_token_ids: flag("Writes tokens as 'token_id:N' in the logprobs."),
  return_token_ids: flag(
    'Adds the token ids of prompt and completion to each choice, and those of top_logprobs.',
  ),
  return_tokens: flag('Alias of return_token_ids.'),
  logprob_token_ids: optional(
    list(integer(0), { max: MAX_LISTED_LOGPROBS }),
    'Ids whose logprobs are returned at each generated position, in place of the most likely tokens. Needs logprobs.',
  ),
  logprobs_format: optional(
    logprobsFormat,
    'Adds rows of logprobs of all tokens, or of the most likely ones. Needs logprobs.',
  ),
  stream_interval: optional(
    integer(1),
    'Maximum number of tokens in one event of a stream. Default: 1 with logprobs, otherwise all that arrive together.',
  ),
  timings_per_token: flag('Adds timings to the end of the response.'),
  include_stop_str_in_output: flag('Keeps the stop text at the end of the completion.'),
  no_stop_trim: flag('Alias of include_stop_str_in_output.'),
  skip_special_tokens: flag('Removes special tokens from the text.'),
  add_special_tokens: optional(
    z.union([z.boolean(), z.literal('always')]),
    "Adds the tokenizer's own special tokens to a text prompt. 'always' adds them also to a text that begins with them, and BOS if the tokenizer adds none.",
  ),
  parse_special: flag(
    'false takes the spelling of special tokens, and of <image> marks, in a prompt as text. Default: true. The texts of an infill are always taken so.',
  ),
  context_length_exceeded_behavior: optional(
    z.enum(['truncate', 'error']),
    'If prompt and max_tokens exceed the context: reduces max_tokens, or rejects the request.',
  ),
  truncate_sequence: flag('Removes the beginning of a prompt that is too long.'),
  truncate_prompt_tokens: optional(
    keptTokens,
    'Keeps only this number of tokens at the end of the prompt. -1 keeps as many as fit.',
  ),
  truncation_side: optional(
    z.enum(['left', 'right']),
    "Where a prompt is truncated. Only 'left' is supported.",
  ),
  service_tier: optional(
    z.enum(['auto', 'default', 'flex', 'priority', 'scale']),
    "'flex' runs the request in capacity that other requests leave: it may wait and pause, and its output is the same. The other values have no effect.",
  ),
  cache_prompt: flag('Allows reuse of the prefix cache of earlier prompts.'),
  cache_salt: salt('Prompts with different salts share no prefix cache.'),
  prompt_cache_isolation_key: salt('Alias of cache_salt.'),
  prompt_cache_key: salt('Alias of cache_salt.'),
  lora: optional(
    z.array(z.unknown()),
    'Not supported: a list that is not empty is rejected. Adapters are merged when a model is built.',
  ),
  prompt_embeds: optional(z.unknown(), 'Not supported: a value is rejected.'),
  images: optional(
    images,
    "Images for the prompt's <image> marks, as data:image/...;base64 texts, or a list of them for each prompt. Needs a vision model.",
  ),
} as const;

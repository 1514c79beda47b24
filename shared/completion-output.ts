import * as z from 'zod';
import { MAX_IMAGES } from './generation.ts';
import { integer, list } from './json-fields.ts';

/** The public fields that shape the answer, the prompt's treatment and the use of caches. */

const flag = z.boolean().nullish();
const salt = z.string().max(256).nullish();

/** How many alternatives: the ceiling is the dialect's; `true` leaves the number to top_logprobs. */
const alternatives = z.union([integer(0), z.literal(true)]);

/** How much of the prompt's end is kept; −1 = what fits. */
const keptTokens = integer(-1).refine((count) => count !== 0, {
  message: "Invalid 'truncate_prompt_tokens': expected -1 or a value >= 1, but got 0 instead.",
  params: { code: 'integer_below_min_value' },
});

export const outputFields = {
  echo: flag,
  echo_last: integer(0).nullish(),
  logprobs: alternatives.nullish(),
  top_logprobs: integer(0).nullish(),
  n_probs: integer(0).nullish(),
  prompt_logprobs: integer(0).nullish(),
  return_tokens_as_token_ids: flag,
  return_token_ids: flag,
  return_tokens: flag,
  logprob_token_ids: list(integer(0), { max: 128 }).nullish(),
  timings_per_token: flag,
  include_stop_str_in_output: flag,
  no_stop_trim: flag,
  skip_special_tokens: flag,
  add_special_tokens: flag,
  context_length_exceeded_behavior: z.enum(['truncate', 'error']).nullish(),
  truncate_sequence: flag,
  truncate_prompt_tokens: keptTokens.nullish(),
  truncation_side: z.enum(['left', 'right']).nullish(),
  cache_prompt: flag,
  cache_salt: salt,
  prompt_cache_isolation_key: salt,
  prompt_cache_key: salt,
  prompt_embeds: z.unknown().nullish(),
  images: list(z.string(), { max: MAX_IMAGES }).nullish(),
} as const;

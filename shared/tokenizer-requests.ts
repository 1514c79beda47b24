import * as z from 'zod';
import { integer, list } from './json-fields.ts';

/** Public bodies of POST /tokenize and POST /detokenize. Without `model` the one that is served is meant. */

const model = z.string().min(1).nullish();

export const publicTokenizeRequest = z.object({
  model,
  prompt: z.string(),
  add_special_tokens: z.boolean().nullish(),
  /** Also answer with the tokens' texts. */
  return_token_strs: z.boolean().nullish(),
});

export const publicDetokenizeRequest = z.object({
  model,
  /** More than any context; decoding is quick, but all streams of the origin wait for it. */
  tokens: list(integer(0), { max: 262_144 }),
});

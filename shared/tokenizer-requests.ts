import * as z from 'zod';
import { integer, list } from './json-fields.ts';

/** The bodies of the public endpoints POST /tokenize and POST /detokenize. */

const model = z.string().min(1).nullish().describe('Model id. If absent, the only served model.');

export const publicTokenizeRequest = z.object({
  model,
  prompt: z.string().describe('The text.'),
  add_special_tokens: z
    .boolean()
    .nullish()
    .describe("Adds the tokenizer's own special tokens. Default: true."),
  return_token_strs: z.boolean().nullish().describe("Also returns the tokens' texts."),
});

export const publicDetokenizeRequest = z.object({
  model,
  /** The origin also refuses more than four contexts of the model. */
  tokens: list(integer(0), { max: 262_144 }).describe('The token ids.'),
});

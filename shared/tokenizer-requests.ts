import * as z from 'zod';
import { integer, list } from './json-fields.ts';

/** The bodies of the public endpoints POST /tokenize and POST /detokenize. */

const model = z.string().nullish().describe('Model id. If absent or empty, the only served model.');

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

/** The body of llama.cpp's POST /tokenize. */
export const nativeTokenizeRequest = z.object({
  model,
  content: z.string().describe('The text, in the form of llama.cpp. It has precedence over prompt.'),
  add_special: z.boolean().nullish().describe("Adds the tokenizer's own special tokens. Default: false."),
  with_pieces: z.boolean().nullish().describe("Returns the tokens' texts with their ids. Default: false."),
});

/** Both forms, for the documents. */
export const documentedTokenizeRequest = publicTokenizeRequest
  .partial()
  .extend(nativeTokenizeRequest.partial().shape);

import * as z from 'zod';
import { documented } from './documented.ts';
import { flag, integer, list, optional } from './json-fields.ts';
import { weight } from './tenant.ts';

/** Returns whether a value can be a token id: a non-negative safe integer. */
export const isTokenId = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;

/** The origin's tokenizer endpoints: POST /tokenize, POST /detokenize, GET /tokenizer_info?model=… */

/**
 * Tenants share the tokenizer by weight. Requests without a tenant, from an older Worker, count as those of
 * one tenant.
 */
const caller = { tenantId: z.string().default(''), weight: weight.default(1) };

export const tokenizeRequest = z.object({
  model: z.string(),
  ...caller,
  prompt: z.string(),
  /** Add the tokenizer's own special tokens (BOS). */
  addSpecialTokens: z.boolean(),
  /** Read the text of a special token, and an image mark, as that token. */
  parseSpecial: z.boolean().default(true),
  /** Also return the tokens' texts. */
  withStrings: z.boolean().default(true),
  /** Also return the tokens' bytes. */
  withBytes: z.boolean().default(false),
});
export type TokenizeRequest = z.infer<typeof tokenizeRequest>;

export const tokenizeResult = z.object({
  tokens: z.array(z.int().min(0)),
  /** The tokens' texts as the vocabulary writes them, one per token. Absent unless requested. */
  tokenStrings: z.array(z.string()).optional(),
  /** The tokens' bytes, one code unit 0..255 per byte. Absent unless requested. */
  tokenBytes: z.array(z.string()).optional(),
});
export type TokenizeResult = z.infer<typeof tokenizeResult>;

export const detokenizeRequest = z.object({
  model: z.string(),
  ...caller,
  tokens: z.custom<number[]>(Array.isArray).superRefine((tokens: readonly unknown[], context) => {
    const wrong = tokens.findIndex((token) => !isTokenId(token));
    if (wrong >= 0) context.addIssue({ code: 'custom', path: [wrong], message: 'expected a token id' });
  }),
});
export type DetokenizeRequest = z.infer<typeof detokenizeRequest>;

/** Special tokens appear as their literal text. */
export const detokenizeResult = z.object({ text: z.string() });
export type DetokenizeResult = z.infer<typeof detokenizeResult>;

export const tokenizerInfo = z.object({
  model: z.string(),
  contextLength: z.int(),
  vocabularySize: z.int(),
  /** Literal texts of the special tokens; null if the tokenizer has none. */
  bosToken: z.string().nullable(),
  eosToken: z.string().nullable(),
  padToken: z.string().nullable(),
  unkToken: z.string().nullable(),
  /** True if the tokenizer adds BOS to text prompts. */
  addBosToken: z.boolean(),
  chatTemplate: z.string().nullable(),
});
export type TokenizerInfo = z.infer<typeof tokenizerInfo>;

/** The bodies of the public endpoints POST /tokenize and POST /detokenize. */

const modelName = optional(z.string(), 'Model id. If absent or empty, the only served model.');

const parseSpecial = flag('false takes the spelling of special tokens as text. Default: true.');

export const publicTokenizeRequest = z.object({
  model: modelName,
  prompt: z.string().describe('The text.'),
  add_special_tokens: flag("Adds the tokenizer's own special tokens. Default: true."),
  parse_special: parseSpecial,
  return_token_strs: flag("Also returns the tokens' texts."),
});

export const publicDetokenizeRequest = z.object({
  model: modelName,
  /** The origin also refuses more than four contexts of the model. */
  tokens: list(integer(0), { max: 262_144 }).describe('The token ids.'),
});
publicDetokenizeRequest.register(documented, {
  name: 'DetokenizeRequest',
  examples: { plain: { model: 'default', tokens: [311, 1_204] } },
});

/** The body of llama.cpp's POST /tokenize. */
export const nativeTokenizeRequest = z.object({
  model: modelName,
  content: z.string().describe('The text, in the form of llama.cpp. It has precedence over prompt.'),
  add_special: flag("Adds the tokenizer's own special tokens. Default: false."),
  parse_special: parseSpecial,
  with_pieces: flag("Returns the tokens' texts with their ids. Default: false."),
});

/** Both forms, for the documents. */
export const documentedTokenizeRequest = publicTokenizeRequest
  .partial()
  .extend(nativeTokenizeRequest.partial().shape)
  .register(documented, {
    name: 'TokenizeRequest',
    examples: {
      plain: { model: 'default', prompt: 'Hello' },
      llamacpp: { content: 'Hello', with_pieces: true },
    },
  });

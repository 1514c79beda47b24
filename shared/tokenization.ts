import * as z from 'zod';

/** Returns whether a value can be a token id: a non-negative safe integer. */
export const isTokenId = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;

/** The origin's tokenizer endpoints: POST /tokenize, POST /detokenize, GET /tokenizer_info?model=… */

/** Tenants take turns. Requests without a tenant, from an older Worker, count as those of one tenant. */
const tenantId = z.string().default('');

export const tokenizeRequest = z.object({
  model: z.string(),
  tenantId,
  prompt: z.string(),
  /** Add the tokenizer's own special tokens (BOS). */
  addSpecialTokens: z.boolean(),
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
  tenantId,
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

import * as z from 'zod';
import { finishReason, modelState } from './generation.ts';

/** The public responses. The tests check responses against these schemas. */

const logprobs = z.object({
  tokens: z.array(z.string()),
  token_logprobs: z.array(z.number().nullable()),
  /** For each token, a map from token to logprob, best first; null for the first prompt token. */
  top_logprobs: z.array(z.record(z.string(), z.number()).nullable()),
  /** Code points from the start of `text`. */
  text_offset: z.array(z.int().min(0)),
});

const promptCandidate = z.object({
  logprob: z.number(),
  rank: z.int().min(1).nullable(),
  decoded_token: z.string(),
});

const choice = z.object({
  index: z.int().min(0),
  text: z.string(),
  logprobs: logprobs.nullable(),
  /** Null in the chunks of a stream until the choice ends. */
  finish_reason: finishReason.nullable(),
  /** The stop string or stop token that ended it. */
  stop_reason: z.union([z.string(), z.int()]).nullish(),
  token_ids: z.array(z.int().min(0)).optional(),
  prompt_token_ids: z.array(z.int().min(0)).optional(),
  prompt_logprobs: z.array(z.record(z.string(), promptCandidate).nullable()).optional(),
});

const completionUsage = z.object({
  prompt_tokens: z.int().min(0),
  completion_tokens: z.int().min(0),
  total_tokens: z.int().min(0),
  prompt_tokens_details: z.object({ cached_tokens: z.int().min(0) }).optional(),
});

const timings = z.object({
  cache_n: z.int(),
  prompt_n: z.int(),
  prompt_ms: z.number(),
  prompt_per_token_ms: z.number(),
  prompt_per_second: z.number(),
  predicted_n: z.int(),
  predicted_ms: z.number(),
  predicted_per_token_ms: z.number(),
  predicted_per_second: z.number(),
});

const base = {
  id: z.string().regex(/^cmpl-[0-9a-f]{32}$/),
  object: z.literal('text_completion'),
  /** Unix seconds. */
  created: z.int(),
  model: z.string(),
  system_fingerprint: z.string(),
  choices: z.array(choice),
  timings: timings.optional(),
};

export const completionResponse = z.object({ ...base, usage: completionUsage });

/** One event of a stream. Usage is absent or null before the end, unless the request asks for continuous usage. */
export const completionChunk = z.object({ ...base, usage: completionUsage.nullish() });

export const errorResponseBody = z.object({
  error: z.object({
    message: z.string(),
    type: z.string(),
    param: z.string().nullable(),
    /** A name, or the HTTP status in some dialects. */
    code: z.union([z.string(), z.int()]),
  }),
});

export const publicModel = z.object({
  id: z.string(),
  object: z.literal('model'),
  created: z.int(),
  owned_by: z.string(),
  /** The model's own id; `id` may be an alias. */
  root: z.string(),
  max_model_len: z.int(),
  /** The first request for an unloaded model loads it and gets 503. */
  state: modelState,
});

export const publicModelList = z.object({ object: z.literal('list'), data: z.array(publicModel) });

export const publicTokenizeResponse = z.object({
  count: z.int().min(0),
  max_model_len: z.int(),
  tokens: z.array(z.int().min(0)),
  token_strs: z.array(z.string()).optional(),
});

export const publicDetokenizeResponse = z.object({ prompt: z.string() });

export const publicTokenizerInfo = z.object({
  model: z.string(),
  tokenizer_class: z.string(),
  model_max_length: z.int(),
  vocab_size: z.int(),
  bos_token: z.string().nullable(),
  eos_token: z.string().nullable(),
  pad_token: z.string().nullable(),
  unk_token: z.string().nullable(),
  add_bos_token: z.boolean(),
  chat_template: z.string().nullable(),
});

export const startResponse = z.object({
  service: z.literal('Continuo'),
  base_url: z.string().describe('Base URL for OpenAI clients.'),
  links: z.record(z.string(), z.string()),
});

export const healthResponse = z.object({ status: z.literal('ok') });

import * as z from 'zod';
import { constraintFields } from './completion-constraints.ts';
import { outputFields } from './completion-output.ts';
import { promptField } from './completion-prompt.ts';
import { MAX_WORD_LENGTH, samplingFields } from './completion-sampling.ts';
import { integer, list } from './json-fields.ts';

/** More than the documented four: evaluation and editor clients send five to nine. */
export const MAX_STOPS = 16;

const stopText = z.string().min(1).max(MAX_WORD_LENGTH);

const streamOptions = z.object({
  include_usage: z.boolean().nullish(),
  continuous_usage_stats: z.boolean().nullish(),
  /** Accepted; nothing is obfuscated. */
  include_obfuscation: z.boolean().nullish(),
});

/**
 * The body of POST /v1/completions: types and ranges of every field that has a meaning here. `null` means absent.
 * Aliases are fields of their own; the Worker brings them together. Fields not listed are ignored by us and passed on
 * to OpenAI-compatible upstreams.
 */
export const completionRequest = z.object({
  /** Some dialects take any name, and every chunk bears it. */
  model: z.string().min(1).max(256),
  prompt: promptField,
  max_tokens: integer(-1).nullish(),
  max_completion_tokens: integer(-1).nullish(),
  n_predict: integer(-1).nullish(),
  min_tokens: integer(0).nullish(),
  n: integer(1, 128).nullish(),
  n_cmpl: integer(1, 128).nullish(),
  best_of: integer(0, 20).nullish(),
  stream: z.boolean().nullish(),
  stream_options: streamOptions.nullish(),
  stop: z.union([stopText, list(stopText, { max: MAX_STOPS })]).nullish(),
  stop_token_ids: list(integer(0), { max: 1_024 }).nullish(),
  ignore_eos: z.boolean().nullish(),
  suffix: z.string().nullish(),
  user: z.string().max(256).nullish(),
  ...samplingFields,
  ...outputFields,
  ...constraintFields,
});
export type CompletionRequest = z.output<typeof completionRequest>;

import * as z from 'zod';
import { constraintFields } from './completion-constraints.ts';
import { outputFields } from './completion-output.ts';
import { promptField } from './completion-prompt.ts';
import { MAX_WORD_LENGTH, samplingFields } from './completion-sampling.ts';
import { documented } from './documented.ts';
import { characters, flag, integer, list, optional } from './json-fields.ts';

/** OpenAI documents four. Evaluation clients send up to nine, editors about 20. */
export const MAX_STOPS = 32;

export const MAX_STOP_PATTERNS = 8;

const stopText = characters(MAX_WORD_LENGTH, z.string().min(1));

export const MAX_BANNED_PHRASES = 256;
/** Total of all banned phrases. */
const MAX_BANNED_CHARACTERS = 16_384;

const bannedPhrases = list(
  z.union([stopText, z.strictObject({ regex: stopText.describe('A regular expression.') })]),
  {
    max: MAX_BANNED_PHRASES,
  },
).refine(
  (phrases) =>
    phrases.reduce((sum, phrase) => sum + (typeof phrase === 'string' ? phrase : phrase.regex).length, 0) <=
    MAX_BANNED_CHARACTERS,
  {
    error: `Invalid 'banned_phrases': too long. Expected at most ${MAX_BANNED_CHARACTERS} characters in total.`,
    params: { code: 'array_above_max_length' },
  },
);

const streamOptions = z.object({
  include_usage: flag('Adds a last chunk with the token usage.'),
  continuous_usage_stats: flag('With include_usage: adds the usage so far to every chunk.'),
  include_obfuscation: flag('Accepted without effect.'),
});

/**
 * The body of POST /v1/completions: types and ranges of all known fields. `null` means absent. Aliases are
 * fields of their own; the Worker resolves them. Unknown fields are ignored, except that OpenAI-compatible
 * upstreams get them.
 */
export const completionRequest = z.object({
  model: z
    .string()
    .min(1)
    .max(256)
    .describe(
      "Model id. 'default' selects the only served model. If absent, 'default'; the dialects openai and fireworks require it.",
    ),
  prompt: promptField.describe(
    'A text; an array of texts, one prompt each; an array of token ids, or of ids and texts to be joined, as one prompt; or an array of several such prompts. An empty text or array, or null, begins a new document.',
  ),
  max_tokens: optional(
    integer(-1),
    'Maximum number of tokens to generate per choice. -1 generates until the context is full.',
  ),
  max_completion_tokens: optional(integer(-1), 'Alias of max_tokens.'),
  n_predict: optional(integer(-1), 'Alias of max_tokens.'),
  t_max_prompt_ms: optional(
    integer(-1),
    'Maximum milliseconds of prompt computation, after which the completion ends without text. 0 or less = no limit. Without effect if no token is to be generated.',
  ),
  t_max_predict_ms: optional(
    integer(-1),
    'Maximum milliseconds from the first token of a choice, after which it ends. 0 or less = no limit.',
  ),
  min_tokens: optional(integer(0), 'A choice does not end before this number of tokens.'),
  n: optional(integer(1, 128), 'Number of choices per prompt.'),
  n_cmpl: optional(integer(1, 128), 'Alias of n.'),
  best_of: optional(
    integer(0, 20),
    'Number of candidates per prompt. The n candidates with the highest mean logprob are returned. Above n, it is not available with stream.',
  ),
  stream: flag('Sends the completion as server-sent events that end with [DONE].'),
  stream_options: optional(streamOptions, 'Options of a stream.'),
  stop: optional(z.union([stopText, list(stopText, { max: MAX_STOPS })]), 'Texts that end a choice.'),
  stop_regex: optional(
    z.union([stopText, list(stopText, { max: MAX_STOP_PATTERNS })]),
    'Regular expressions that end a choice, at the first place where one of them matches.',
  ),
  stop_token_ids: optional(list(integer(0), { max: 1_024 }), 'Token ids that end a choice.'),
  ignore_eos: flag("The model's end token does not end a choice."),
  banned_phrases: optional(
    bannedPhrases,
    'Texts, or {"regex": …} patterns, that never appear in the generated text, whatever its tokens are.',
  ),
  token_healing: flag(
    'Chooses the last tokens of the prompt again, among those that continue its text, so that a prompt may end anywhere in a word.',
  ),
  suffix: optional(z.string(), 'Text after the insertion point, for models that can fill in the middle.'),
  user: optional(characters(256), 'Name of the end user. Only a hash of it is logged.'),
  ...samplingFields,
  ...outputFields,
  ...constraintFields,
});
export type CompletionRequest = z.output<typeof completionRequest>;

/** Some dialects have a default model. */
export const documentedCompletionRequest = completionRequest.partial({ model: true }).register(documented, {
  name: 'CompletionRequest',
  examples: {
    plain: { model: 'default', prompt: 'Once upon a time', max_tokens: 30, temperature: 0.7 },
    stream: {
      model: 'default',
      prompt: 'Once upon a time',
      stream: true,
      stream_options: { include_usage: true },
    },
    infill: {
      model: 'default',
      prompt: 'def fibonacci(n):\n    ',
      suffix: '\n    return result',
      max_tokens: 100,
    },
    scoring: { model: 'default', prompt: 'The sky is blue', max_tokens: 0, echo: true, logprobs: 1 },
  },
});

import * as z from 'zod';
import { timings } from './completion-response.ts';
import { documented } from './documented.ts';

/** The responses of llama.cpp's own API. */

const token = {
  id: z.int().min(0).describe('Token id.'),
  token: z.string().describe('The token as text; incomplete characters become U+FFFD.'),
  bytes: z.array(z.int().min(0).max(255)).describe('The bytes of the token.'),
  logprob: z.number().describe('Natural logarithm of the probability.'),
};

const probabilities = z.array(
  z.object({
    ...token,
    top_logprobs: z.array(z.object(token)).describe('The most likely tokens, best first.'),
  }),
);

const count = (description: string) => z.int().min(0).optional().describe(description);

/** All members are optional, because `response_fields` selects some. */
export const nativeResult = z.looseObject({
  index: count('Number of the choice: prompt index times n_cmpl, plus index within the prompt.'),
  content: z
    .string()
    .optional()
    .describe('The generated text. In a stream, the next part; empty in the last event.'),
  tokens: z.array(z.int().min(0)).optional().describe('Token ids of content, if return_tokens is true.'),
  stop: z.boolean().optional().describe('False in all events of a stream but the last one of each choice.'),
  model: z.string().optional().describe('The model as the request names it.'),
  tokens_predicted: count('Generated tokens so far.'),
  tokens_evaluated: count('Tokens of the prompt.'),
  tokens_cached: count('Tokens of the prompt that were found in the prefix cache.'),
  generation_settings: z
    .looseObject({})
    .optional()
    .describe('The settings of the request with all defaults, and the context length as n_ctx.'),
  has_new_line: z.boolean().optional().describe('Whether the text contains a line break.'),
  truncated: z.boolean().optional().describe('Whether the context was full.'),
  stop_type: z
    .enum(['none', 'eos', 'limit', 'word'])
    .optional()
    .describe('Why the text ended: end token, limit of tokens or time, or a stop text.'),
  stopping_word: z.string().optional().describe('The stop text that ended the text, or an empty string.'),
  timings: timings.optional().describe('Durations.'),
  completion_probabilities: probabilities
    .optional()
    .describe('Probabilities of the generated tokens, if n_probs is above 0.'),
});
nativeResult.register(documented, { name: 'NativeCompletionEvent' });

/** A request for several choices gets a list. */
export const nativeResponse = z.union([nativeResult, z.array(nativeResult)]).register(documented, {
  name: 'NativeCompletion',
  example: {
    index: 0,
    content: 'a + b',
    tokens: [],
    stop: true,
    model: 'default',
    tokens_predicted: 4,
    tokens_evaluated: 21,
    tokens_cached: 0,
    generation_settings: { n_ctx: 2_048, n_predict: 32, temperature: 0.8 },
    has_new_line: false,
    truncated: false,
    stop_type: 'eos',
    stopping_word: '',
  },
});

export const propsResponse = z.object({
  default_generation_settings: z
    .object({
      n_ctx: z.int().min(1).describe('Context length in tokens: prompt and completion together.'),
      params: z.looseObject({}).describe('Default settings, as in generation_settings.'),
    })
    .describe('Settings of a request without fields.'),
  model_alias: z.string().describe('The model as the request names it.'),
  model_path: z.string().describe('Id of the model.'),
  modalities: z
    .object({
      vision: z.boolean().describe('Whether the model accepts images.'),
      audio: z.boolean().describe('Always false.'),
    })
    .describe('Inputs besides text.'),
  chat_template: z.string().describe('Always empty: there are no chats.'),
  build_info: z.string().describe("Always 'continuo'."),
});
propsResponse.register(documented, {
  name: 'Props',
  example: {
    default_generation_settings: { n_ctx: 2_048, params: { n_predict: -1, temperature: 0.8 } },
    model_alias: 'default',
    model_path: 'default',
    modalities: { vision: false, audio: false },
    chat_template: '',
    build_info: 'continuo',
  },
});

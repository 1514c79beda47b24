import { timings } from '@continuo/shared/completion-response.ts';
import * as z from 'zod';
import { infillRequest, nativeRequest } from '../dialects/native-request.ts';
import { COMPLETION_HEADERS, REPLAY_HEADERS } from '../http/headers.ts';
import { COMPLETION, type DocumentedOperation, ONE_MODEL, REPEATABLE } from './documented-operation.ts';

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

/** A request for several choices gets a list. */
const nativeAnswer = z.union([nativeResult, z.array(nativeResult)]);

const propsAnswer = z.object({
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

const NATIVE_ANSWER = {
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
};

const nativeOperation = (
  id: string,
  summary: string,
  body: DocumentedOperation['body'],
): DocumentedOperation => ({
  id,
  summary,
  tag: 'Completions',
  ...(body && { body }),
  answer: { name: 'NativeCompletion', schema: nativeAnswer, example: NATIVE_ANSWER },
  events: { name: 'NativeCompletionEvent', schema: nativeResult },
  answerHeaders: { ...REPLAY_HEADERS, ...COMPLETION_HEADERS },
  headers: REPEATABLE,
  errors: COMPLETION,
  limited: true,
});

/** The operations of llama.cpp's own API. */
export const NATIVE_OPERATIONS: Readonly<Record<string, DocumentedOperation>> = {
  'POST /completion': nativeOperation(
    'createNativeCompletion',
    "Complete a text; request and response as in llama.cpp's own API.",
    {
      name: 'NativeCompletionRequest',
      schema: nativeRequest,
      examples: { plain: { prompt: 'Once upon a time', n_predict: 30, n_probs: 1 } },
    },
  ),
  'POST /infill': nativeOperation(
    'createNativeInfill',
    "Fill in a text; request and response as in llama.cpp's own API.",
    {
      name: 'InfillRequest',
      schema: infillRequest,
      examples: {
        editor: {
          input_prefix: 'def add(a, b):\n',
          input_suffix: '\n\nprint(add(1, 2))\n',
          input_extra: [{ filename: 'mul.py', text: 'def mul(a, b):\n    return a * b\n' }],
          prompt: '    return ',
          n_predict: 32,
          t_max_predict_ms: 1_000,
        },
      },
    },
  ),
  'GET /props': {
    id: 'showProps',
    summary: "Describe the properties of a model as llama.cpp's server does.",
    tag: 'Models',
    errors: ONE_MODEL,
    query: { model: 'Model id. If absent, the only served model.' },
    answer: {
      name: 'Props',
      schema: propsAnswer,
      example: {
        default_generation_settings: { n_ctx: 2_048, params: { n_predict: -1, temperature: 0.8 } },
        model_alias: 'default',
        model_path: 'default',
        modalities: { vision: false, audio: false },
        chat_template: '',
        build_info: 'continuo',
      },
    },
  },
};

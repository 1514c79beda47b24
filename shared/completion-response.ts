import * as z from 'zod';
import { documented } from './documented.ts';
import { finishReason } from './generation.ts';
import { always } from './json-fields.ts';
import { modelBuild, modelState } from './origin-model.ts';

/** The public responses. The tests check responses against these schemas. */

const logprobs = z.object({
  tokens: z.array(z.string()).describe('The tokens as texts.'),
  token_logprobs: z
    .array(z.number().nullable())
    .describe(
      'Natural logarithm of the probability of each token; null for the first prompt token, and up to prompt_logprob_start.',
    ),
  top_logprobs: z
    .array(z.record(z.string(), z.number()).nullable())
    .describe(
      'For each token, a map from token to logprob, best first; null for the first prompt token. Of several tokens with one text, the token itself or else the best has it as its key, and the others have token_id:N.',
    ),
  top_token_ids: z
    .array(z.record(z.string(), z.int().min(0)).nullable())
    .optional()
    .describe('The token ids of top_logprobs, if return_token_ids is set.'),
  rows: z
    .array(z.string().nullable())
    .optional()
    .describe(
      'For each token, the logprobs of all tokens in the order of their ids, or of those in row_ids, as base64 of logprobs_format.encoding; null for the first prompt token.',
    ),
  row_ids: z
    .array(z.string().nullable())
    .optional()
    .describe('The ids of rows as base64 of int32, ascending, if logprobs_format.top_p is set.'),
  text_offset: z.array(z.int().min(0)).describe('Position of each token in the text, in code points.'),
});

const promptCandidate = z.object({
  logprob: z.number().describe('Natural logarithm of the probability.'),
  rank: z.int().min(1).describe('Position among all tokens by probability, from 1.'),
  decoded_token: z.string().describe('The token as text.'),
});

const choice = z.object({
  index: z.int().min(0).describe('Number of the choice: prompt index times n, plus index within the prompt.'),
  text: z.string().describe('The completion; with echo, prompt and completion. In a stream, the next part.'),
  logprobs: logprobs.nullable().describe('Logprobs of the tokens of text; null unless requested.'),
  finish_reason: finishReason
    .nullable()
    .describe('Why the choice ended. Null in the chunks of a stream until it ends.'),
  stop_reason: z
    .union([z.string(), z.int()])
    .nullish()
    .describe('The stop text or stop token that ended the choice.'),
  token_ids: z.array(z.int().min(0)).optional().describe('Token ids of the completion, if requested.'),
  prompt_token_ids: z.array(z.int().min(0)).optional().describe('Token ids of the prompt, if requested.'),
  prompt_logprobs: z
    .array(z.record(z.string(), promptCandidate).nullable())
    .optional()
    .describe(
      'For each prompt token, a map from token id to candidate: its own first, then the most likely ones. Null for the first token.',
    ),
});

export const completionUsage = z.object({
  prompt_tokens: z.int().min(0).describe('Tokens of all prompts.'),
  completion_tokens: z.int().min(0).describe('Generated tokens of all choices.'),
  total_tokens: z.int().min(0).describe('Sum of prompt and completion tokens.'),
  prompt_tokens_details: z
    .object({ cached_tokens: z.int().min(0).describe('Prompt tokens found in the prefix cache.') })
    .optional()
    .describe('Parts of prompt_tokens.'),
  limit_reached: z
    .string()
    .optional()
    .describe(
      'The limit of the account that ended the completion, such as tokens_per_day. Absent if none did. The finish reason is length.',
    ),
});

export const timings = z.object({
  cache_n: z.int().describe('Prompt tokens found in the prefix cache.'),
  prompt_n: z.int().describe('Prompt tokens that were computed.'),
  prompt_ms: z.number().describe('Time of the prompt in milliseconds.'),
  prompt_per_token_ms: z.number().describe('Milliseconds per prompt token.'),
  prompt_per_second: z.number().describe('Prompt tokens per second.'),
  predicted_n: z.int().describe('Generated tokens.'),
  predicted_ms: z.number().describe('Time of the generation in milliseconds.'),
  predicted_per_token_ms: z.number().describe('Milliseconds per generated token.'),
  predicted_per_second: z.number().describe('Generated tokens per second.'),
});

const base = {
  id: z
    .string()
    .regex(/^cmpl-[0-9a-f]{32}$/)
    .describe('Id of the completion.'),
  object: always('text_completion'),
  created: z.int().describe('Start of the request in Unix seconds.'),
  model: z.string().describe('The model as the request names it.'),
  system_fingerprint: z.string().describe('Changes with the model, its settings and the server version.'),
  choices: z.array(choice).describe('The choices. A stream sends each of them in parts.'),
  timings: timings.optional().describe('Durations, if timings_per_token is true.'),
};

export const completionResponse = z
  .object({ ...base, usage: completionUsage.describe('Token usage.') })
  .register(documented, {
    name: 'Completion',
    example: {
      id: 'cmpl-0f3a9c1d5b7e2846a0c4d8e2f6b1a395',
      object: 'text_completion',
      created: 1_795_000_000,
      model: 'default',
      system_fingerprint: 'fp_5f0c2a71',
      choices: [
        { index: 0, text: ' there was a king.', logprobs: null, finish_reason: 'stop', stop_reason: null },
      ],
      usage: {
        prompt_tokens: 4,
        completion_tokens: 6,
        total_tokens: 10,
        prompt_tokens_details: { cached_tokens: 0 },
      },
    },
  });

/** One event of a stream. Usage is absent or null before the end, unless usage is continuous. */
export const completionChunk = z.object({
  ...base,
  usage: completionUsage.nullish().describe('Token usage; in the last chunk, if requested.'),
});
completionChunk.register(documented, { name: 'CompletionChunk' });

export const errorResponseBody = z.object({
  error: z
    .object({
      message: z.string().describe('What is wrong and what to do.'),
      type: z.string().describe('Class of the error.'),
      param: z.string().nullable().describe('The field that caused the error; null if none did.'),
      code: z
        .union([z.string(), z.int()])
        .describe('Name of the error, or the HTTP status in some dialects.'),
    })
    .describe('The error.'),
});

export const publicModel = z.object({
  id: z.string().describe('Id for requests.'),
  object: always('model'),
  created: z.int().describe('Unix seconds.'),
  owned_by: z.string().describe('Owner of the model.'),
  root: z.string().describe("The model's own id; id may be an alias."),
  max_model_len: z.int().describe('Context length in tokens: prompt and completion together.'),
  state: modelState.describe('The first request for an unloaded model loads it and gets 503.'),
  token_healing: z.boolean().optional().describe('True if token_healing can be used with the model.'),
  pricing: z
    .object({
      version: z.string().describe('Version of the price.'),
      prompt_micros: z.int().describe('Micro-units of the currency per million prompt tokens.'),
      cached_prompt_micros: z.int().describe('Per million prompt tokens from the prefix cache.'),
      completion_micros: z.int().describe('Per million completion tokens.'),
      flex_permille: z.int().describe('Factor of service_tier flex, in thousandths.'),
      batch_permille: z.int().describe('Factor of batches, in thousandths.'),
    })
    .optional()
    .describe('Price of the model; absent if it costs nothing.'),
  ...modelBuild.partial().shape,
});

const MODEL: z.infer<typeof publicModel> = {
  id: 'default',
  object: 'model',
  created: 1_795_000_000,
  owned_by: 'continuo',
  root: 'default',
  max_model_len: 2_048,
  state: 'loaded',
};
publicModel.register(documented, { name: 'Model', example: MODEL });

export const publicModelList = z.object({
  object: always('list'),
  data: z.array(publicModel).describe('The models that the key may use.'),
});
publicModelList.register(documented, { name: 'ModelList', example: { object: 'list', data: [MODEL] } });

const tokenPiece = z.object({
  id: z.int().min(0).describe('The token id.'),
  piece: z
    .union([z.string(), z.array(z.int().min(0).max(255))])
    .describe('Its text, or its bytes if they are not whole characters.'),
});

export const publicTokenizeResponse = z.object({
  count: z.int().min(0).optional().describe('Number of tokens. Absent in the form of llama.cpp.'),
  max_model_len: z
    .int()
    .optional()
    .describe('Context length of the model in tokens. Absent in the form of llama.cpp.'),
  tokens: z
    .array(z.union([z.int().min(0), tokenPiece]))
    .describe('The token ids; with with_pieces, objects of id and text.'),
  token_strs: z.array(z.string()).optional().describe('The tokens as texts, if requested.'),
});
publicTokenizeResponse.register(documented, {
  name: 'Tokens',
  example: { count: 2, max_model_len: 2_048, tokens: [311, 1_204] },
});

export const publicDetokenizeResponse = z.object({
  prompt: z.string().optional().describe('The text.'),
  content: z.string().optional().describe('The text, in place of prompt in the dialect llamacpp.'),
});
publicDetokenizeResponse.register(documented, { name: 'DetokenizedText', example: { prompt: 'Hello' } });

export const publicTokenizerInfo = z.object({
  model: z.string().describe('Model id.'),
  tokenizer_class: z.string().describe('Class of the tokenizer in the Transformers library.'),
  model_max_length: z.int().describe('Context length of the model in tokens.'),
  vocab_size: z.int().describe('Number of token ids.'),
  bos_token: z.string().nullable().describe('Token at the start of a text.'),
  eos_token: z.string().nullable().describe('Token that ends a text.'),
  pad_token: z.string().nullable().describe('Padding token.'),
  unk_token: z.string().nullable().describe('Token for unknown text.'),
  add_bos_token: z.boolean().describe('Whether prompts get the start token.'),
  chat_template: z
    .string()
    .nullable()
    .describe('Jinja template for chats; null if the model has none. Completions do not use it.'),
});
publicTokenizerInfo.register(documented, {
  name: 'TokenizerInfo',
  example: {
    model: 'default',
    tokenizer_class: 'PreTrainedTokenizerFast',
    model_max_length: 2_048,
    vocab_size: 4_096,
    bos_token: null,
    eos_token: '<|end|>',
    pad_token: null,
    unk_token: null,
    add_bos_token: false,
    chat_template: null,
  },
});

export const startResponse = z.object({
  service: always('Continuo'),
  base_url: z.string().describe('Base URL for OpenAI clients.'),
  links: z.record(z.string(), z.string()).describe('Addresses of the other endpoints.'),
});
startResponse.register(documented, {
  name: 'Start',
  example: {
    service: 'Continuo',
    base_url: 'https://api.example.com/v1',
    links: { models: 'https://api.example.com/v1/models' },
  },
});

export const healthResponse = z
  .object({ status: always('ok') })
  .register(documented, { name: 'Health', example: { status: 'ok' } });

import { completionRequest } from '@continuo/shared/completion.ts';
import * as answers from '@continuo/shared/completion-response.ts';
import { documentedTokenizeRequest, publicDetokenizeRequest } from '@continuo/shared/tokenization.ts';
import {
  BODY_HEADERS,
  COMPLETION_HEADERS,
  LAST_EVENT_HEADER,
  REPLAY_HEADERS,
  RESUMABLE_HEADER,
} from '../http/headers.ts';
import { ACCOUNT_OPERATIONS } from './account-operations.ts';
import { BATCH_OPERATIONS } from './batch-operations.ts';
import {
  ANY,
  BODY,
  CALLER,
  COMPLETION,
  type DocumentedOperation,
  type Examples,
  MODELS,
  ONE_MODEL,
  REPEATABLE,
  TOKENIZER,
  tagged,
} from './documented-operation.ts';
import { NATIVE_OPERATIONS } from './native-operations.ts';
import { SCORING_OPERATIONS } from './scoring-operations.ts';

const COMPLETION_EXAMPLES: Examples = {
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
};

const ID = 'cmpl-0f3a9c1d5b7e2846a0c4d8e2f6b1a395';

const COMPLETION_ANSWER = {
  id: ID,
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
};

const MODEL = {
  id: 'default',
  object: 'model',
  created: 1_795_000_000,
  owned_by: 'continuo',
  root: 'default',
  max_model_len: 2_048,
  state: 'loaded',
};

const EVENTS = { name: 'CompletionChunk', schema: answers.completionChunk };

const completions = (id: string, summary: string): DocumentedOperation => ({
  id,
  summary,
  tag: 'Completions',
  body: {
    name: 'CompletionRequest',
    schema: completionRequest.partial({ model: true }),
    examples: COMPLETION_EXAMPLES,
  },
  answer: { name: 'Completion', schema: answers.completionResponse, example: COMPLETION_ANSWER },
  events: EVENTS,
  errors: COMPLETION,
  limited: true,
  answerHeaders: { ...REPLAY_HEADERS, ...COMPLETION_HEADERS },
  headers: {
    ...REPEATABLE,
    [RESUMABLE_HEADER]:
      '`true` makes a stream resumable after a lost connection, until one minute after its end.',
  },
});

/** Operations by method and router path. */
export const OPERATIONS: Readonly<Record<string, DocumentedOperation>> = {
  'POST /v1/completions': completions('createCompletion', 'Complete a text.'),
  'POST /api/v1/completions': completions('createCompletionAlias', 'The same as POST /v1/completions.'),
  'POST /v1/fim/completions': completions(
    'createInfill',
    'Fill in a text; the same as POST /v1/completions.',
  ),
  'GET /v1/completions/:rest/stream': {
    id: 'resumeCompletion',
    summary: 'Resume a stream.',
    tag: 'Completions',
    events: EVENTS,
    errors: [...CALLER, 'not_found'],
    limited: true,
    headers: {
      [LAST_EVENT_HEADER]:
        'The id of the last received event. If absent, the stream starts from the beginning.',
    },
  },
  ...NATIVE_OPERATIONS,
  ...SCORING_OPERATIONS,
  ...tagged('Account', ACCOUNT_OPERATIONS),
  ...tagged('Batches', BATCH_OPERATIONS),
  'GET /v1/models': {
    id: 'listModels',
    summary: 'List the models that the key may use.',
    tag: 'Models',
    errors: MODELS,
    answer: {
      name: 'ModelList',
      schema: answers.publicModelList,
      example: { object: 'list', data: [MODEL] },
    },
  },
  'GET /v1/models/:rest+': {
    id: 'retrieveModel',
    summary: 'Describe one model. Its id may contain slashes.',
    tag: 'Models',
    errors: ONE_MODEL,
    answer: { name: 'Model', schema: answers.publicModel, example: MODEL },
  },
  'GET /': {
    id: 'start',
    summary: 'Link to the other endpoints. Browsers get the page.',
    tag: 'Service',
    isOpen: true,
    errors: ANY,
    answer: {
      name: 'Start',
      schema: answers.startResponse,
      example: {
        service: 'Continuo',
        base_url: 'https://api.example.com/v1',
        links: { models: 'https://api.example.com/v1/models' },
      },
    },
  },
  'GET /health': {
    id: 'health',
    summary: 'Report that the endpoint is up.',
    tag: 'Service',
    isOpen: true,
    errors: ANY,
    answer: { name: 'Health', schema: answers.healthResponse, example: { status: 'ok' } },
  },
  'POST /tokenize': {
    id: 'tokenize',
    answerHeaders: BODY_HEADERS,
    summary: 'Convert a text to token ids.',
    tag: 'Tokenizer',
    errors: [...TOKENIZER, ...BODY, 'empty_string', 'string_above_max_length'],
    body: {
      name: 'TokenizeRequest',
      schema: documentedTokenizeRequest,
      examples: {
        plain: { model: 'default', prompt: 'Hello' },
        llamacpp: { content: 'Hello', with_pieces: true },
      },
    },
    answer: {
      name: 'Tokens',
      schema: answers.publicTokenizeResponse,
      example: { count: 2, max_model_len: 2_048, tokens: [311, 1_204] },
    },
  },
  'POST /detokenize': {
    id: 'detokenize',
    answerHeaders: BODY_HEADERS,
    summary: 'Convert token ids to a text.',
    tag: 'Tokenizer',
    errors: [
      ...TOKENIZER,
      ...BODY,
      'empty_string',
      'array_above_max_length',
      'integer_above_max_value',
      'integer_below_min_value',
    ],
    body: {
      name: 'DetokenizeRequest',
      schema: publicDetokenizeRequest,
      examples: { plain: { model: 'default', tokens: [311, 1_204] } },
    },
    answer: {
      name: 'DetokenizedText',
      schema: answers.publicDetokenizeResponse,
      example: { prompt: 'Hello' },
    },
  },
  'GET /tokenizer_info': {
    id: 'tokenizerInfo',
    summary: "Describe the model's tokenizer.",
    tag: 'Tokenizer',
    errors: TOKENIZER,
    query: { model: 'Model id. If absent, the only served model.' },
    answer: {
      name: 'TokenizerInfo',
      schema: answers.publicTokenizerInfo,
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
    },
  },
};

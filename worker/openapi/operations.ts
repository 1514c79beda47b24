import type * as z from 'zod';
import { completionRequest } from '../../shared/completion.ts';
import * as answers from '../../shared/completion-response.ts';
import type { ErrorCode } from '../../shared/errors.ts';
import { publicDetokenizeRequest, publicTokenizeRequest } from '../../shared/tokenizer-requests.ts';
import { type Described, REPLAYED } from '../http/headers.ts';
import { IDEMPOTENCY_HEADER } from '../replay/idempotent.ts';
import { LAST_EVENT_HEADER, RESUMABLE_HEADER } from '../replay/resumable.ts';
import { ANYWHERE, BODY, CALLER, COMPLETION, MODELS, ONE_MODEL, TOKENIZER } from './errors.ts';

export interface Operation {
  readonly id: string;
  readonly summary: string;
  /** False where no key is needed. */
  readonly secured: boolean;
  readonly body?: { readonly name: string; readonly schema: z.ZodType; readonly examples: Examples };
  /** What may go wrong. */
  readonly errors: readonly ErrorCode[];
  /** The answers tell how the caller's limits stand. */
  readonly limited?: boolean;
  /** Headers of a good answer, besides those of every answer. */
  readonly answerHeaders?: Described;
  /** None where all answers are streams. */
  readonly answer?: { readonly name: string; readonly schema: z.ZodType; readonly example: unknown };
  /** Name and schema of the events when the answer may be a stream. */
  readonly events?: { readonly name: string; readonly schema: z.ZodType };
  /** Query parameters, all optional texts. */
  readonly query?: Described;
  /** Header parameters, all optional texts, besides those of every operation. */
  readonly headers?: Described;
}

type Examples = Readonly<Record<string, unknown>>;

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

const completions = (id: string): Operation => ({
  id,
  summary: 'Continue a text.',
  secured: true,
  body: { name: 'CompletionRequest', schema: completionRequest, examples: COMPLETION_EXAMPLES },
  answer: { name: 'Completion', schema: answers.completionResponse, example: COMPLETION_ANSWER },
  events: EVENTS,
  errors: COMPLETION,
  limited: true,
  answerHeaders: REPLAYED,
  headers: {
    [IDEMPOTENCY_HEADER]: 'A plain request repeated with the same key within an hour gets the first answer.',
    [RESUMABLE_HEADER]:
      '`true`: what is left of a stream can be had, whenever its connection broke, until a minute after its end.',
  },
});

/** By method and path as the router knows them. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  'POST /v1/completions': completions('createCompletion'),
  'POST /api/v1/completions': completions('createCompletionAlias'),
  'GET /v1/completions/:rest/stream': {
    id: 'resumeCompletion',
    summary: 'What is left of a resumable stream.',
    secured: true,
    events: EVENTS,
    errors: [...CALLER, 'not_found'],
    limited: true,
    headers: { [LAST_EVENT_HEADER]: 'The id of the last event that arrived; all of them without it.' },
  },
  'GET /v1/models': {
    id: 'listModels',
    summary: 'The models this key may use.',
    secured: true,
    errors: MODELS,
    answer: {
      name: 'ModelList',
      schema: answers.publicModelList,
      example: { object: 'list', data: [MODEL] },
    },
  },
  'GET /v1/models/:rest+': {
    id: 'retrieveModel',
    summary: 'One model; its id may contain slashes.',
    secured: true,
    errors: ONE_MODEL,
    answer: { name: 'Model', schema: answers.publicModel, example: MODEL },
  },
  'GET /health': {
    id: 'health',
    summary: 'Whether the endpoint answers.',
    secured: false,
    errors: ANYWHERE,
    answer: { name: 'Health', schema: answers.healthResponse, example: { status: 'ok' } },
  },
  'POST /tokenize': {
    id: 'tokenize',
    summary: 'Token ids of a text.',
    secured: true,
    errors: [...TOKENIZER, ...BODY, 'empty_string', 'string_above_max_length'],
    body: {
      name: 'TokenizeRequest',
      schema: publicTokenizeRequest,
      examples: { plain: { model: 'default', prompt: 'Hello' } },
    },
    answer: {
      name: 'Tokens',
      schema: answers.publicTokenizeResponse,
      example: { count: 2, max_model_len: 2_048, tokens: [311, 1_204] },
    },
  },
  'POST /detokenize': {
    id: 'detokenize',
    summary: 'The text of token ids.',
    secured: true,
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
    summary: "The model's tokenizer.",
    secured: true,
    errors: TOKENIZER,
    query: { model: 'Model id; without it the one that is served.' },
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

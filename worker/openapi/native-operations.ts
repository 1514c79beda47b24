import { infillRequest, nativeRequest } from '../dialects/native-request.ts';
import { CONSTRAINT_HEADERS, REPLAY_HEADERS } from '../http/headers.ts';
import { COMPLETION, type DocumentedOperation, ONE_MODEL, REPEATABLE } from './documented-operation.ts';
import * as native from './native-answers.ts';

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
  secured: true,
  ...(body && { body }),
  answer: { name: 'NativeCompletion', schema: native.nativeAnswer, example: NATIVE_ANSWER },
  events: { name: 'NativeCompletionEvent', schema: native.nativeResult },
  answerHeaders: { ...REPLAY_HEADERS, ...CONSTRAINT_HEADERS },
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
    secured: true,
    errors: ONE_MODEL,
    query: { model: 'Model id. If absent, the only served model.' },
    answer: {
      name: 'Props',
      schema: native.propsAnswer,
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

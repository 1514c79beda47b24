import { tenantWithKey } from '../../admin/admin-client.ts';
import { type ErrorCase, posting, refusedByOrigin } from './case.ts';

const type = 'invalid_request_error';
const invalid = (
  name: string,
  fields: Record<string, unknown>,
  code: string,
  param: string,
  message: RegExp,
): ErrorCase => ({
  name,
  send: posting(fields),
  type,
  code,
  param,
  message,
});

export const STATUS_400: readonly ErrorCase[] = [
  {
    name: 'bad JSON',
    send: (worker) => worker.post('{"model":'),
    type,
    code: 'invalid_json',
    param: null,
    message: /could not parse the JSON body.*: Unexpected end of JSON input\./,
  },
  ...[{}, { 'idempotency-key': 'no-utf-8' }, { 'x-resumable': 'true' }].map(
    (headers): ErrorCase => ({
      name: `bytes that are no UTF-8, ${Object.keys(headers)[0] ?? 'plain'}`,
      send: (worker) =>
        worker.request('/v1/completions', {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body: new Uint8Array([0x22, 0xff, 0x22]),
        }),
      type,
      code: 'invalid_json',
      param: null,
      message: /UTF-8/,
    }),
  ),
  {
    name: 'no body',
    send: (worker) => worker.post(''),
    type,
    code: 'invalid_json',
    param: null,
    message: /could not parse the JSON body.*: Unexpected end of JSON input\./,
  },
  {
    name: 'a body of many small objects',
    send: (worker) => worker.post(`{"x":[${'{},'.repeat(200_000)}{}]}`),
    type,
    code: 'invalid_value',
    param: null,
    message: /more than 100000 strings, lists and objects/,
  },
  {
    name: 'a body that is nested too deeply',
    send: (worker) => worker.post('{"x":'.repeat(40_000)),
    type,
    code: 'invalid_value',
    param: null,
    message: /nested deeper than 264 levels/,
  },
  {
    name: 'a body that is not an object',
    send: (worker) => worker.post('[]'),
    type,
    code: 'invalid_type',
    param: null,
    message: /expected a JSON object/,
  },
  invalid(
    'no model',
    { model: null },
    'missing_required_parameter',
    'model',
    /Missing required parameter: 'model'/,
  ),
  invalid(
    'no prompt',
    { prompt: undefined },
    'missing_required_parameter',
    'prompt',
    /Missing required parameter: 'prompt'/,
  ),
  invalid(
    'wrong type',
    { n: 'two' },
    'invalid_type',
    'n',
    /'n': expected an integer, but got a string \("two"\) instead/,
  ),
  invalid(
    'wrong type of an element',
    { stop: ['a', 'b', 3] },
    'invalid_type',
    'stop[2]',
    /'stop\[2\]': expected a string/,
  ),
  invalid(
    'integer above maximum',
    { n: 130 },
    'integer_above_max_value',
    'n',
    /Expected a value <= 128, but got 130 instead/,
  ),
  invalid(
    'integer below minimum',
    { n: 0 },
    'integer_below_min_value',
    'n',
    /Expected a value >= 1, but got 0 instead/,
  ),
  invalid(
    'decimal above maximum',
    { temperature: 2.5 },
    'decimal_above_max_value',
    'temperature',
    /<= 2, but got 2.5/,
  ),
  invalid('decimal below', { top_p: -0.5 }, 'decimal_below_min_value', 'top_p', />= 0, but got -0.5/),
  invalid(
    'value outside an enumeration',
    { truncation_side: 'up' },
    'invalid_value',
    'truncation_side',
    /'left', 'right'/,
  ),
  invalid(
    'array too long',
    { stop: Array(33).fill('a') },
    'array_above_max_length',
    'stop',
    /maximum length 32.*length 33/,
  ),
  invalid(
    'array too short',
    { logit_bias: [[1]] },
    'array_below_min_length',
    'logit_bias[0]',
    /minimum length 2/,
  ),
  invalid('empty array', { guided_choice: [] }, 'empty_array', 'guided_choice', /array too short/),
  invalid(
    'string too long',
    { user: 'u'.repeat(300) },
    'string_above_max_length',
    'user',
    /length 256.*length 300/,
  ),
  invalid('empty string', { stop: '' }, 'empty_string', 'stop', /empty string/),
  invalid(
    'unsupported field',
    { use_beam_search: true },
    'unsupported_parameter',
    'use_beam_search',
    /not supported/,
  ),
  invalid(
    'images',
    { prompt: '<image>', images: ['data:,'] },
    'unsupported_parameter',
    'images',
    /the model 'org\/tiny' accepts text only/,
  ),
  invalid(
    'images without marks for a model without images',
    { images: ['data:,'] },
    'unsupported_parameter',
    'images',
    /accepts text only/,
  ),
  {
    name: 'invalid image',
    send: (worker, origin) => {
      origin.models = origin.models.map((model) => ({ ...model, imageTokens: 9 }));
      const images = ['data:image/png;base64,AAAA', 'http://169.254.169.254/latest/meta-data'];
      return worker.post({ model: 'default', prompt: ['<image>', 'a<image>'], images });
    },
    type,
    code: 'invalid_value',
    param: 'images[1]',
    message: /image URLs are not supported/,
  },
  {
    name: 'image count',
    send: (worker, origin) => {
      origin.models = origin.models.map((model) => ({ ...model, imageTokens: 9 }));
      return worker.post({ model: 'default', prompt: '<image><image>', images: ['data:,'] });
    },
    type,
    code: 'invalid_value',
    param: 'images',
    message: /got 1 image, but the prompt has 2 '<image>' marks\./,
  },
  {
    name: 'number that JSON.parse reads as infinite',
    send: (worker) => worker.post('{"model":"default","prompt":"Hi","n":1e999}'),
    type,
    code: 'invalid_type',
    param: 'n',
    message: /expected an integer, but got a number that is too large to represent instead/,
  },
  {
    name: 'max_tokens above the limit of the tenant',
    send: async (worker) => {
      const { key } = await tenantWithKey(worker, 'few-tokens', { max_tokens: 10 });
      const headers = { authorization: `Bearer ${key}` };
      return worker.post({ model: 'default', prompt: 'Hi', max_tokens: 11 }, { headers });
    },
    type,
    code: 'integer_above_max_value',
    param: 'max_tokens',
    message: /Your account allows at most 10, but got 11/,
  },
  {
    name: 'sequences above the limit of the tenant',
    send: async (worker) => {
      const { key } = await tenantWithKey(worker, 'few-sequences', { max_sequences: 2 });
      const headers = { authorization: `Bearer ${key}` };
      return worker.post({ model: 'default', prompt: 'Hi', n: 3 }, { headers });
    },
    type,
    code: 'integer_above_max_value',
    param: 'n',
    message: /at most 2 sequences per request, but 1 prompt with 3 choices each would need 3/,
  },
  invalid('conflict', { best_of: 2, stream: true }, 'conflicting_parameters', 'best_of', /'stream'/),
  invalid(
    'two aliases',
    { max_tokens: 1, n_predict: 2 },
    'conflicting_parameters',
    'max_tokens',
    /'max_tokens' and 'n_predict'/,
  ),
  invalid(
    'fewer candidates than choices',
    { best_of: 2, n: 3 },
    'conflicting_parameters',
    'best_of',
    /at least 'n'/,
  ),
  invalid(
    'two constraints',
    { grammar: 'root ::= "a"', regex: 'a' },
    'conflicting_parameters',
    'grammar',
    /'grammar' and 'regex'/,
  ),
  invalid('bad schema', { json_schema: '{' }, 'invalid_json_schema', 'json_schema', /not valid JSON/),
  {
    name: 'suffix for a model without infill',
    send: (worker, origin) => {
      origin.models = origin.models.map((model) => ({ ...model, infill: false }));
      return worker.post({ model: 'default', prompt: 'a', suffix: 'b' });
    },
    type,
    code: 'unsupported_parameter',
    param: 'suffix',
    message: /cannot fill in the middle/,
  },
  {
    name: 'unknown dialect',
    send: posting({}, { headers: { 'x-dialect': 'klingon' } }),
    type,
    code: 'invalid_value',
    param: 'x-dialect',
    message: /'openai', 'fireworks', 'llamacpp', 'mistralrs', 'vllm'/,
  },
  {
    name: 'an error that only the origin detects, unchanged',
    send: refusedByOrigin(400, {
      message: "This model's maximum context length is 2048 tokens.",
      type,
      param: 'prompt',
      code: 'context_length_exceeded',
    }),
    type,
    code: 'context_length_exceeded',
    param: 'prompt',
    message: /^This model's maximum context length is 2048 tokens\.$/,
    headers: { 'retry-after': null },
  },
  {
    name: 'a grammar that the origin rejects, with the original field name',
    send: (worker, origin) => {
      const error = { message: 'Line 1, column 4: oops', type, param: 'constraint', code: 'invalid_grammar' };
      origin.script = (_, wire) => wire.refuse(400, { error });
      return worker.post({ model: 'default', prompt: 'Hi', structured_outputs: { grammar: 'oops' } });
    },
    type,
    code: 'invalid_grammar',
    param: 'structured_outputs.grammar',
    message: /column 4/,
  },
  {
    name: 'an unknown token id in a listed prompt, with both indices',
    send: (worker, origin) => {
      const message = "Invalid 'prompt[1]': token id 9 is outside the vocabulary.";
      const error = { message, type, param: 'prompt[1]', code: 'invalid_value' };
      origin.script = (_, wire) => wire.refuse(400, { error });
      return worker.post({ model: 'default', prompt: [[1, 9]] });
    },
    type,
    code: 'invalid_value',
    param: 'prompt[0][1]',
    message: /^Invalid 'prompt\[0\]\[1\]': token id 9/,
  },
  {
    name: 'an unknown token id in a single prompt',
    send: (worker, origin) => {
      const message = "Invalid 'prompt[1]': token id 9 is outside the vocabulary.";
      const error = { message, type, param: 'prompt[1]', code: 'invalid_value' };
      origin.script = (_, wire) => wire.refuse(400, { error });
      return worker.post({ model: 'default', prompt: [1, 9] });
    },
    type,
    code: 'invalid_value',
    param: 'prompt[1]',
    message: /^Invalid 'prompt\[1\]': token id 9/,
  },
];

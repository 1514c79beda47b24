import { MAX_BANNED_PHRASES, MAX_STOP_PATTERNS, MAX_STOPS } from '../../../shared/completion.ts';

/** The specification of one field, independent of the schema. */
export interface FieldRow {
  /** Accepted values, including bounds. */
  readonly good: readonly unknown[];
  /** Rejected values, with the code, and the param if it differs from the field. */
  readonly bad: readonly (readonly [value: unknown, code: string, param?: string])[];
  /** Other fields that the good values need. */
  readonly beside?: Readonly<Record<string, unknown>>;
}

const INT32 = 2_147_483_647;
const wrong = (...values: readonly unknown[]) => values.map((value) => [value, 'invalid_type'] as const);

const flag: FieldRow = { good: [true, false], bad: wrong(1, 'true', [], {}) };

const integer = (min: number, max: number, beside?: FieldRow['beside']): FieldRow => ({
  good: [min, max],
  bad: [
    [min - 1, 'integer_below_min_value'],
    [max + 1, 'integer_above_max_value'],
    [1e20, 'integer_above_max_value'],
    ...wrong(min + 0.5, '1', true, [1], {}),
  ],
  ...(beside && { beside }),
});

const decimal = (min: number, max: number | null): FieldRow => ({
  good: [min, ...(max === null ? [1e9] : [(min + max) / 2, max])],
  bad: [
    [min - 0.001, 'decimal_below_min_value'],
    ...(max === null ? [] : [[max + 0.001, 'decimal_above_max_value'] as const]),
    ...wrong('1', true, [1], {}),
  ],
});

const text = (maxLength: number | null, empty = true): FieldRow => ({
  good: [
    'a',
    ...(empty ? [''] : []),
    ...(maxLength === null ? [] : ['x'.repeat(maxLength), '🙂'.repeat(maxLength)]),
  ],
  bad: [
    ...(empty ? [] : [['', 'empty_string'] as const]),
    ...(maxLength === null
      ? []
      : ['x', '🙂'].map((sign) => [sign.repeat(maxLength + 1), 'string_above_max_length'] as const)),
    ...wrong(1, true, ['a'], {}),
  ],
});

const ids = (field: string, min: number, max: number): FieldRow => ({
  good: [[0], [INT32], Array.from({ length: max }, (_, id) => id), ...(min === 0 ? [[]] : [])],
  bad: [
    ...(min === 0 ? [] : [[[], 'empty_array'] as const]),
    [Array.from({ length: max + 1 }, () => 1), 'array_above_max_length'],
    [[1, -1], 'integer_below_min_value', `${field}[1]`],
    [[INT32 + 1], 'integer_above_max_value', `${field}[0]`],
    [['1'], 'invalid_type', `${field}[0]`],
    [[1.5], 'invalid_type', `${field}[0]`],
    ...wrong(1, '1', true, {}),
  ],
});

const penalty = decimal(-2, 2);
const repetition: FieldRow = {
  good: [0.001, 1, 2],
  bad: [[0, 'decimal_below_min_value'], [2.001, 'decimal_above_max_value'], ...wrong('1', true, [1], {})],
};
const jsonSchema = (field: string): FieldRow => ({
  good: [{}, { type: 'object' }, '{"type":"string"}', true, false, 'true', ''],
  bad: [['{', 'invalid_json_schema', field], ['1', 'invalid_json_schema', field], ...wrong(1, [])],
});
const source = text(null);
const alternatives: FieldRow = { ...integer(0, 20), good: [0, 20, false] };

export const FIELD_TABLE: Readonly<Record<string, FieldRow>> = {
  prompt: {
    good: [
      ...['', [], [[]], [[1], []], ['a', '']],
      ...['a', ['a'], ['a', 'b'], [1, 2], [[1], [2, 3]], [12, 'a', 56], [['a', 1], [2]], ['a', [1]]],
    ],
    bad: [
      [[1, -1], 'integer_below_min_value', 'prompt[1]'],
      [[1, 1.5], 'invalid_type', 'prompt[1]'],
      [[INT32 + 1], 'integer_above_max_value', 'prompt[0]'],
      [['a', null], 'invalid_type', 'prompt[1]'],
      [[[1], [2, [3]]], 'invalid_type', 'prompt[1][1]'],
      [[1, [2]], 'invalid_type', 'prompt[1]'],
      [[{}], 'invalid_type', 'prompt[0]'],
      ...wrong(1, true, {}),
    ],
  },
  max_tokens: integer(-1, INT32),
  max_completion_tokens: integer(-1, INT32),
  t_max_prompt_ms: integer(-1, INT32),
  t_max_predict_ms: integer(-1, INT32),
  n_predict: integer(-1, INT32),
  min_tokens: integer(0, INT32, { max_tokens: -1 }),
  n: integer(1, 128),
  n_cmpl: integer(1, 128),
  best_of: integer(0, 20),
  stream: flag,
  stream_options: {
    good: [
      {},
      { include_usage: true, continuous_usage_stats: false, include_obfuscation: true },
      { include_usage: null },
    ],
    bad: [[{ include_usage: 1 }, 'invalid_type', 'stream_options.include_usage'], ...wrong(1, 'a', true, [])],
    beside: { stream: true },
  },
  stop: {
    good: [
      'a',
      'x'.repeat(4_096),
      [],
      ['a'],
      Array.from({ length: MAX_STOPS }, (_, index) => `s${index}`),
      ['x'.repeat(4_096)],
    ],
    bad: [
      ['x'.repeat(4_097), 'string_above_max_length'],
      ['', 'empty_string'],
      [['a', ''], 'empty_string', 'stop[1]'],
      [['a', 'b', 3], 'invalid_type', 'stop[2]'],
      [Array.from({ length: MAX_STOPS + 1 }, () => 'a'), 'array_above_max_length'],
      [['x'.repeat(4_097)], 'string_above_max_length', 'stop[0]'],
      ...wrong(1, true, {}),
    ],
  },
  stop_regex: {
    good: ['a', 'x'.repeat(4_096), [], Array.from({ length: MAX_STOP_PATTERNS }, () => 'a+')],
    bad: [
      ['x'.repeat(4_097), 'string_above_max_length'],
      ['', 'empty_string'],
      [['a', ''], 'empty_string', 'stop_regex[1]'],
      [['a', 3], 'invalid_type', 'stop_regex[1]'],
      [Array.from({ length: MAX_STOP_PATTERNS + 1 }, () => 'a'), 'array_above_max_length'],
      [['x'.repeat(4_097)], 'string_above_max_length', 'stop_regex[0]'],
      ...wrong(1, true, {}),
    ],
  },
  stop_token_ids: ids('stop_token_ids', 0, 1_024),
  ignore_eos: flag,
  banned_phrases: {
    good: [
      [],
      ['a', { regex: 'a+' }],
      Array.from({ length: MAX_BANNED_PHRASES }, (_, index) => `p${index}`),
      Array.from({ length: 4 }, () => 'x'.repeat(4_096)),
    ],
    bad: [
      [Array.from({ length: MAX_BANNED_PHRASES + 1 }, () => 'a'), 'array_above_max_length'],
      [['x'.repeat(4_097)], 'string_above_max_length', 'banned_phrases[0]'],
      [Array.from({ length: 5 }, () => 'x'.repeat(3_277)), 'array_above_max_length'],
      [['a', ''], 'empty_string', 'banned_phrases[1]'],
      [['a', { regex: '' }], 'empty_string', 'banned_phrases[1].regex'],
      [[1], 'invalid_type', 'banned_phrases[0]'],
      ...wrong('a', 1, {}),
    ],
  },
  token_healing: flag,
  suffix: text(null),
  user: text(256),
  temperature: decimal(0, 2),
  top_p: decimal(0, 1),
  top_k: integer(-1, INT32),
  min_p: decimal(0, 1),
  typical_p: decimal(0, 1),
  typ_p: decimal(0, 1),
  top_n_sigma: { good: [-1, 0, 2.5], bad: wrong('1', true, []) },
  xtc_probability: decimal(0, 1),
  xtc_threshold: decimal(0, 1),
  dynatemp_range: decimal(0, null),
  dynatemp_exponent: decimal(0, null),
  min_keep: integer(0, INT32),
  seed: {
    good: [-(2 ** 62), -1, 0, 2 ** 53 + 2, 2 ** 62],
    bad: [
      [2 ** 63, 'integer_above_max_value'],
      [2 ** 64, 'integer_above_max_value'],
      [-(2 ** 64), 'integer_below_min_value'],
      ...wrong(1.5, '1', true),
    ],
  },
  frequency_penalty: penalty,
  presence_penalty: penalty,
  repetition_penalty: repetition,
  repeat_penalty: repetition,
  repeat_last_n: integer(-1, INT32),
  logit_bias: {
    good: [
      {},
      { 5: -100, 6: 100, 7: false },
      [
        [5, 1.5],
        [6, false],
      ],
      [],
      Array.from({ length: 8_192 }, (_, id) => [id, 1]),
    ],
    bad: [
      [Array.from({ length: 8_193 }, (_, id) => [id, 1]), 'array_above_max_length'],
      [Object.fromEntries(Array.from({ length: 8_193 }, (_, id) => [id, 1])), 'array_above_max_length'],
      [{ 5: true }, 'invalid_type', 'logit_bias.5'],
      [{ 5: 100.5 }, 'decimal_above_max_value', 'logit_bias.5'],
      [{ 5: -101 }, 'decimal_below_min_value', 'logit_bias.5'],
      [{ 5: 'x' }, 'invalid_type', 'logit_bias.5'],
      [{ abc: 1 }, 'invalid_value', 'logit_bias.abc'],
      [
        [
          [5, 1],
          [6, 101],
        ],
        'decimal_above_max_value',
        'logit_bias[1][1]',
      ],
      [[['5', 1]], 'invalid_type', 'logit_bias[0][0]'],
      [[[5]], 'array_below_min_length', 'logit_bias[0]'],
      [[[5, 1, 2]], 'array_above_max_length', 'logit_bias[0]'],
      ...wrong(1, 'a', true),
    ],
  },
  mirostat: integer(0, 2),
  mirostat_tau: decimal(0, null),
  mirostat_target: decimal(0, null),
  mirostat_eta: decimal(0, 1),
  mirostat_lr: decimal(0, 1),
  dry_multiplier: decimal(0, null),
  dry_base: decimal(1, null),
  dry_allowed_length: integer(0, INT32),
  dry_penalty_last_n: integer(-1, INT32),
  dry_sequence_breakers: {
    good: [
      [],
      ['\n'],
      Array.from({ length: 64 }, () => 'x'),
      ['x'.repeat(40)],
      '["\\n", ":"]',
      '"\\n", ":"',
      '',
    ],
    bad: [
      [[''], 'empty_string', 'dry_sequence_breakers[0]'],
      [['x'.repeat(41)], 'string_above_max_length', 'dry_sequence_breakers[0]'],
      [Array.from({ length: 65 }, () => 'x'), 'array_above_max_length'],
      [[1], 'invalid_type', 'dry_sequence_breakers[0]'],
      ['a', 'invalid_value'],
      ['["a"', 'invalid_value'],
      ['"a", 1', 'invalid_type', 'dry_sequence_breakers[1]'],
      ['""', 'empty_string', 'dry_sequence_breakers[0]'],
      ...wrong(1, true, {}),
    ],
  },
  bad_words: {
    good: [
      [],
      ['a'],
      Array.from({ length: 1_024 }, (_, index) => `w${index}`),
      Array.from({ length: 4 }, () => 'x'.repeat(4_096)),
    ],
    bad: [
      [Array.from({ length: 1_025 }, () => 'a'), 'array_above_max_length'],
      [['x'.repeat(4_097)], 'string_above_max_length', 'bad_words[0]'],
      [Array.from({ length: 5 }, () => 'x'.repeat(3_277)), 'array_above_max_length'],
      [[''], 'empty_string', 'bad_words[0]'],
      [[1], 'invalid_type', 'bad_words[0]'],
      ...wrong('a', 1, {}),
    ],
  },
  allowed_token_ids: ids('allowed_token_ids', 1, 524_288),
  samplers: {
    good: [
      '',
      'kpmt',
      'x'.repeat(64),
      [],
      ['top_k', 'infill'],
      Array.from({ length: 64 }, () => 'x'.repeat(64)),
    ],
    bad: [
      ['x'.repeat(65), 'string_above_max_length'],
      [['x'.repeat(65)], 'string_above_max_length', 'samplers[0]'],
      [Array.from({ length: 65 }, () => 'dry'), 'array_above_max_length'],
      [[1], 'invalid_type', 'samplers[0]'],
      ...wrong(1, true, {}),
    ],
  },
  use_beam_search: { good: [false], bad: [[true, 'unsupported_parameter'], ...wrong(1, 'a')] },
  echo: flag,
  echo_last: integer(0, INT32),
  stream_interval: integer(1, INT32),
  logprobs: {
    good: [0, 20, false],
    bad: [[-1, 'integer_below_min_value'], [21, 'integer_above_max_value'], ...wrong(true, 1.5, '1', [], {})],
  },
  top_logprobs: alternatives,
  n_probs: alternatives,
  prompt_logprobs: alternatives,
  prompt_logprob_start: integer(-1, INT32, { prompt_logprobs: 1 }),
  logprob_start_len: integer(-1, INT32),
  return_tokens_as_token_ids: flag,
  return_token_ids: flag,
  return_tokens: flag,
  logprob_token_ids: { ...ids('logprob_token_ids', 0, 128), beside: { logprobs: 0 } },
  logprobs_format: {
    good: [
      { encoding: 'float32' },
      { encoding: 'float16', top_p: 0.5 },
      { encoding: 'float32', top_p: null },
    ],
    bad: [
      [{}, 'missing_required_parameter', 'logprobs_format.encoding'],
      [{ encoding: 'float64' }, 'invalid_value', 'logprobs_format.encoding'],
      [{ encoding: 'float32', top_p: 0 }, 'decimal_below_min_value', 'logprobs_format.top_p'],
      [{ encoding: 'float32', top_p: 1 }, 'decimal_above_max_value', 'logprobs_format.top_p'],
      ...wrong(1, 'float32', true, []),
    ],
    beside: { logprobs: 0 },
  },
  timings_per_token: flag,
  include_stop_str_in_output: flag,
  no_stop_trim: flag,
  skip_special_tokens: flag,
  parse_special: flag,
  add_special_tokens: { good: [true, false, 'always'], bad: wrong(1, 'true', [], {}) },
  context_length_exceeded_behavior: {
    good: ['truncate', 'error'],
    bad: [['x', 'invalid_value'], ...wrong(1, true)],
  },
  truncate_sequence: flag,
  truncate_prompt_tokens: {
    good: [-1, 1, INT32],
    bad: [[0, 'integer_below_min_value'], ...integer(-1, INT32).bad],
  },
  truncation_side: {
    good: ['left'],
    bad: [['right', 'unsupported_parameter'], ['up', 'invalid_value'], ...wrong(1, true)],
  },
  service_tier: {
    good: ['auto', 'default', 'flex', 'priority', 'scale'],
    bad: [['cheap', 'invalid_value'], ...wrong(1, true)],
  },
  cache_prompt: flag,
  cache_salt: text(256),
  prompt_cache_isolation_key: text(256),
  prompt_cache_key: text(256),
  lora: {
    good: [[]],
    bad: [
      [[{ id: 0, scale: 1 }], 'unsupported_parameter'],
      ['x', 'invalid_type'],
    ],
  },
  prompt_embeds: {
    good: [],
    bad: [
      ['AAAA', 'unsupported_parameter'],
      [{}, 'unsupported_parameter'],
    ],
  },
  images: {
    good: [[], [[]]],
    bad: [
      [[['data:,'], 'data:,'], 'invalid_type', 'images[0]'],
      [Array.from({ length: 257 }, () => []), 'array_above_max_length'],
      [
        [Array.from({ length: 33 }, () => 'data:,'), Array.from({ length: 32 }, () => 'data:,')],
        'array_above_max_length',
      ],
      [Array.from({ length: 65 }, () => 'data:,'), 'array_above_max_length'],
      [[1], 'invalid_type', 'images[0]'],
      ...wrong('a', 1, {}),
    ],
  },
  grammar: {
    good: [
      '',
      "root ::= 'a'",
      // Not a valid grammar. Only the origin detects this.
      'r',
      { type: 'regex', value: 'a+' },
      { type: 'json_schema', value: {} },
      { type: 'lark', value: 'start: "a"' },
    ],
    bad: [
      [{ type: 'x', value: 'a' }, 'invalid_value', 'grammar.type'],
      [{ value: 'a' }, 'missing_required_parameter', 'grammar.type'],
      [{ type: 'regex' }, 'missing_required_parameter', 'grammar.value'],
      [{ type: 'regex', value: 5 }, 'invalid_type', 'grammar.value'],
      [{ type: 'llguidance', value: { grammars: [] } }, 'invalid_grammar', 'grammar.value'],
      ...wrong(1, true, []),
    ],
  },
  json_schema: jsonSchema('json_schema'),
  guided_json: jsonSchema('guided_json'),
  response_format: {
    good: [
      { type: 'text' },
      { type: 'json_object' },
      { type: 'json_object', schema: {} },
      { type: 'json_schema', json_schema: { name: 'a', schema: {}, strict: true } },
      { type: 'grammar', grammar: 'root ::= "a"' },
    ],
    bad: [
      [{ type: 'xml' }, 'invalid_value', 'response_format.type'],
      [{}, 'missing_required_parameter', 'response_format.type'],
      [{ type: 'json_schema' }, 'missing_required_parameter', 'response_format.json_schema.schema'],
      [{ type: 'grammar' }, 'missing_required_parameter', 'response_format.grammar'],
      ...wrong(1, 'json_object', true, []),
    ],
  },
  guided_regex: source,
  guided_choice: {
    good: [['a'], Array.from({ length: 4_096 }, (_, index) => `c${index}`)],
    bad: [
      [[], 'empty_array'],
      [Array.from({ length: 4_097 }, () => 'a'), 'array_above_max_length'],
      [[''], 'empty_string', 'guided_choice[0]'],
      [[1], 'invalid_type', 'guided_choice[0]'],
      ...wrong('a', 1, {}),
    ],
  },
  guided_grammar: source,
  structured_outputs: {
    good: [
      { json: {} },
      { regex: 'a' },
      { choice: ['a'] },
      { grammar: 'root ::= "a"' },
      { json_object: true },
      {},
      { json: null, json_object: false },
      { json: '', regex: '', grammar: '' },
    ],
    bad: [
      [{ structural_tag: 'x' }, 'invalid_value'],
      [{ regex: 1 }, 'invalid_type', 'structured_outputs.regex'],
      [
        { choice: Array.from({ length: 4_097 }, () => 'a') },
        'array_above_max_length',
        'structured_outputs.choice',
      ],
      [{ regex: 'a', json: {} }, 'conflicting_parameters', 'structured_outputs.json'],
      [{ regex: '', grammer: 'a' }, 'invalid_value'],
      ...wrong(1, 'a', true, []),
    ],
  },
  regex: source,
  ebnf: source,
  open_objects: flag,
  any_key_order: flag,
  tools: {
    good: [Array.from({ length: 128 }, () => ({ type: 'function', function: { name: 'f', strict: true } }))],
    beside: { tool_choice: { type: 'function', function: { name: 'f' } } },
    bad: [
      [[], 'missing_required_parameter'],
      [[{ type: 'function', function: { name: 'f' } }], 'unsupported_parameter'],
      [[{ type: 'x', function: { name: 'f' } }], 'invalid_value', 'tools[0].type'],
      [[{ type: 'function' }], 'missing_required_parameter', 'tools[0].function'],
      [
        Array.from({ length: 129 }, () => ({ type: 'function', function: { name: 'f' } })),
        'array_above_max_length',
      ],
      [
        [{ type: 'function', function: { name: 'f'.repeat(65) } }],
        'string_above_max_length',
        'tools[0].function.name',
      ],
      ...wrong(1, 'a', {}),
    ],
  },
  tool_choice: {
    good: ['none', 'auto'],
    bad: [['x', 'invalid_value'], ['required', 'missing_required_parameter', 'tools'], ...wrong(1, true, [])],
  },
};

/** Fields of other servers that have no effect with any value. Clients send them by default. */
export const IGNORED_FIELDS = [
  'adapter',
  'id_slot',
  'length_penalty',
  'metadata',
  'models',
  'n_indent',
  'perf_metrics_in_response',
  'post_sampling_probs',
  'prediction',
  'provider',
  'raw_output',
  'reasoning_effort',
  'repetition_detection',
  'response_fields',
  'return_progress',
  'route',
  'safety_model',
  'spaces_between_special_tokens',
  'speculation',
  'sse_ping_interval',
  'thinking_token_budget',
  'transforms',
] as const;

/** Fields for another server's operator. The Worker never sends them on. */
export const SERVICE_FIELDS = [
  'kv_transfer_params',
  'priority',
  'request_id',
  'session_id',
  'vllm_xargs',
] as const;

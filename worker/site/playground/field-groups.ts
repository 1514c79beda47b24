/** The request fields that the page offers, in groups. Aliases and unsupported fields are left out. */
export interface FieldGroup {
  readonly title: string;
  readonly fields: readonly string[];
  /** Section of docs/api.md. */
  readonly section: string;
}

export const FIELD_GROUPS: readonly FieldGroup[] = [
  { title: 'Basics', fields: ['temperature', 'max_tokens', 'stop', 'seed'], section: 'fields' },
  {
    title: 'Sampling',
    section: 'sampling',
    fields: [
      ...[
        'top_p',
        'min_p',
        'top_k',
        'typical_p',
        'top_n_sigma',
        'min_keep',
        'xtc_probability',
        'xtc_threshold',
      ],
      ...['dynatemp_range', 'dynatemp_exponent', 'mirostat', 'mirostat_tau', 'mirostat_eta', 'samplers'],
    ],
  },
  {
    title: 'Penalties',
    section: 'sampling',
    fields: [
      ...['repetition_penalty', 'repeat_last_n', 'frequency_penalty', 'presence_penalty', 'dry_multiplier'],
      ...['dry_base', 'dry_allowed_length', 'dry_penalty_last_n', 'dry_sequence_breakers'],
    ],
  },
  {
    title: 'Tokens',
    section: 'fields',
    fields: ['min_tokens', 'ignore_eos', 'stop_token_ids', 'logit_bias', 'bad_words', 'allowed_token_ids'],
  },
  {
    title: 'Constraint',
    section: 'fields',
    fields: [
      ...['json_schema', 'grammar', 'regex', 'guided_choice', 'response_format', 'structured_outputs'],
      ...['tools', 'tool_choice'],
    ],
  },
  { title: 'Logprobs', fields: ['logprobs', 'echo', 'echo_last'], section: 'logprobs' },
  {
    title: 'Output',
    section: 'fields',
    fields: [
      'include_stop_str_in_output',
      'skip_special_tokens',
      'add_special_tokens',
      'service_tier',
      'user',
    ],
  },
  {
    title: 'Context and cache',
    section: 'length',
    fields: [
      ...[
        'context_length_exceeded_behavior',
        'truncate_sequence',
        'truncate_prompt_tokens',
        'truncation_side',
      ],
      ...['cache_prompt', 'cache_salt', 'images', 't_max_prompt_ms', 't_max_predict_ms'],
    ],
  },
];

/** Fields that the page sets in other ways, and how. */
export const FIELDS_ELSEWHERE: Readonly<Record<string, string>> = {
  model: 'the header of the page',
  prompt: 'the text',
  suffix: 'the text after the insertion mark',
  stream: 'the playground always streams',
  stream_options: 'the playground always asks for usage',
  n: 'the tree shows several choices',
  best_of: 'not available with streams',
  prompt_logprobs: 'not available with streams; echo shows the same',
  prompt_logprob_start: 'echo shows the logprobs of the whole prompt',
  logprob_token_ids: 'the page shows the most likely tokens',
  return_token_ids: 'always sent with logprobs',
  return_tokens_as_token_ids: 'the page needs the bytes of tokens',
  timings_per_token: 'the page measures by itself',
};

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

/** The request fields that the page offers, in groups. Aliases and unsupported fields are left out. */
export interface FieldGroup {
  readonly title: string;
  readonly fields: readonly string[];
  /** Section of docs/api.md. */
  readonly section: string;
}

const group = (title: string, section: string, names: string): FieldGroup => ({
  title,
  section,
  fields: names.split(' '),
});

export const FIELD_GROUPS: readonly FieldGroup[] = [
  group('Basics', 'fields', 'temperature max_tokens n stop seed token_healing'),
  group(
    'Sampling',
    'sampling',
    'top_p min_p top_k typical_p top_n_sigma min_keep xtc_probability xtc_threshold dynatemp_range dynatemp_exponent mirostat mirostat_tau mirostat_eta samplers',
  ),
  group(
    'Penalties',
    'sampling',
    'repetition_penalty repeat_last_n frequency_penalty presence_penalty dry_multiplier dry_base dry_allowed_length dry_penalty_last_n dry_sequence_breakers',
  ),
  group(
    'Tokens',
    'fields',
    'min_tokens ignore_eos stop_regex stop_token_ids logit_bias bad_words banned_phrases allowed_token_ids',
  ),
  group(
    'Constraint',
    'fields',
    'json_schema grammar regex guided_choice response_format structured_outputs tools tool_choice ' +
      'open_objects any_key_order',
  ),
  group('Logprobs', 'logprobs', 'logprobs return_token_ids echo echo_last'),
  group(
    'Output',
    'fields',
    'include_stop_str_in_output skip_special_tokens add_special_tokens parse_special service_tier user',
  ),
  group(
    'Context and cache',
    'length',
    'context_length_exceeded_behavior truncate_sequence truncate_prompt_tokens truncation_side cache_prompt cache_salt images t_max_prompt_ms t_max_predict_ms',
  ),
];

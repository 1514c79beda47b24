import { words } from '@continuo/shared/field-names.ts';

/** What kinds of OpenAI-compatible servers accept in the body of POST /completions. */

export const FLAVORS = [
  'generic',
  'continuo',
  'openai',
  'vllm',
  'llm-d',
  'llamacpp',
  'litellm',
  'openrouter',
] as const;
export type Flavor = (typeof FLAVORS)[number];

/** OpenAI's legacy API. */
const STANDARD = words(`
  model prompt suffix max_tokens n best_of echo logprobs user seed stream stream_options stop temperature
  top_p logit_bias presence_penalty frequency_penalty
`);

/** Source: the field lists of vLLM's OpenAI-compatible completions, without KV transfer. Clients cannot set `priority`. */
const VLLM = words(`
  top_k min_p repetition_penalty length_penalty min_tokens ignore_eos bad_words stop_token_ids
  include_stop_str_in_output allowed_token_ids truncate_prompt_tokens skip_special_tokens
  spaces_between_special_tokens add_special_tokens cache_salt response_format structured_outputs guided_json
  guided_regex guided_choice guided_grammar guided_whitespace_pattern prompt_logprobs logprob_token_ids
  priority
`);

/** Source: the field list of llama.cpp's server for completions, without slots, adapters and response filters. */
const LLAMACPP = words(`
  top_k min_p typical_p top_n_sigma xtc_probability xtc_threshold min_keep dynatemp_range dynatemp_exponent
  mirostat mirostat_tau mirostat_eta dry_multiplier dry_base dry_allowed_length dry_penalty_last_n
  dry_sequence_breakers repeat_penalty repeat_last_n ignore_eos cache_prompt n_keep n_indent samplers
  grammar json_schema t_max_predict_ms
`);

/** Gateways hand further fields to servers and accounts of their own, so they get few of them. */
const GATEWAY = ['top_k', 'min_p', 'repetition_penalty'];

/** Null = every field. */
export const ALLOWED_FIELDS: Readonly<Record<Flavor, ReadonlySet<string> | null>> = {
  generic: null,
  continuo: null,
  openai: new Set(STANDARD),
  vllm: new Set([...STANDARD, ...VLLM]),
  'llm-d': new Set([...STANDARD, ...VLLM]),
  llamacpp: new Set([...STANDARD, ...LLAMACPP]),
  litellm: new Set([...STANDARD, ...GATEWAY]),
  openrouter: new Set([...STANDARD, ...GATEWAY, 'response_format']),
};

/**
 * LiteLLM passes unknown fields on to the OpenAI library, which refuses them. Inside of `extra_body`, the server behind it
 * gets them.
 */
export const WRAPPED_FIELDS: Readonly<Partial<Record<Flavor, readonly string[]>>> = {
  litellm: ['response_format', 'prompt_logprobs'],
};

/** LiteLLM's streams have neither logprobs nor the numbers of choices. */
export const PLAIN_STREAMS: ReadonlySet<Flavor> = new Set(['litellm']);

/**
 * The bodies that front-ends send with their default settings, as their public sources build them. Each names
 * its source and version. The prompts are our own. A field that a front-end leaves undefined is absent, as in
 * its JSON.
 */

type Body = Readonly<Record<string, unknown>>;

export interface FrontEnd {
  readonly path: string;
  /** The dialect that its operator sets for the tenant; none = the default one. */
  readonly dialect?: string;
  readonly body: Body;
}

const PROMPT = 'Anna: Hello!\nBen:';
const STOPS = ['\nAnna:'];
const BREAKERS = ['\n', ':', '"', '*'];

/**
 * SillyTavern 1.19.0 (npm), public/scripts/textgen-settings.js: createTextGenGenerationData, with the
 * defaults of textgenerationwebui_settings, a streamed reply of 250 tokens and the display of token
 * probabilities.
 */
const TAVERN = {
  prompt: PROMPT,
  max_new_tokens: 250,
  max_tokens: 250,
  stream: true,
  logprobs: 10,
  temperature: 0.7,
  top_p: 0.5,
  top_k: 40,
  top_a: 0,
  tfs: 1,
  typical_p: 1,
  typical: 1,
  min_p: 0,
  repetition_penalty: 1.2,
  frequency_penalty: 0,
  presence_penalty: 0,
  skew: 0,
  min_tokens: 0,
  add_bos_token: true,
  smoothing_factor: 0,
  smoothing_curve: 1,
  dry_allowed_length: 2,
  dry_multiplier: 0,
  dry_base: 1.75,
  dry_penalty_last_n: 0,
  dry_sequence_breakers: JSON.stringify(BREAKERS),
  max_tokens_second: 0,
  stopping_strings: STOPS,
  stop: STOPS,
  truncation_length: 2_048,
  ban_eos_token: false,
  skip_special_tokens: true,
  include_reasoning: true,
  mirostat_mode: 0,
  mirostat_tau: 5,
  mirostat_eta: 0.1,
  custom_token_bans: '',
  banned_strings: [],
  api_server: 'http://127.0.0.1:8787',
  xtc_threshold: 0.1,
  xtc_probability: 0,
  nsigma: 0,
  top_n_sigma: 0,
  min_keep: 0,
  adaptive_target: -0.01,
  adaptive_decay: 0.9,
};

/** The fields of every type but vLLM, InfermaticAI and Aphrodite. */
const TAVERN_COMMON = {
  rep_pen: 1.2,
  rep_pen_range: 0,
  repetition_penalty_range: 0,
  guidance_scale: 1,
  negative_prompt: '',
  repeat_penalty: 1.2,
  repeat_last_n: 0,
  n_predict: 250,
  num_predict: 250,
  num_ctx: 2_048,
  mirostat: 0,
  ignore_eos: false,
  n_probs: 10,
  rep_pen_slope: 1,
};

const TAVERN_VLLM = { n: 1, ignore_eos: false, spaces_between_special_tokens: true };

/** src/constants.js has the fields that its server sends on, for some types. */
const only = (body: Body, names: string): Body =>
  Object.fromEntries(names.split(' ').flatMap((name) => (name in body ? [[name, body[name]]] : [])));

const TOGETHER =
  'model prompt max_tokens temperature top_p top_k repetition_penalty min_p presence_penalty frequency_penalty stream stop';
const VLLM =
  'model prompt frequency_penalty logprobs max_tokens n presence_penalty stop stream temperature top_p top_k min_p repetition_penalty ignore_eos min_tokens skip_special_tokens spaces_between_special_tokens';

const model = 'default';
const tavern = (body: Body, dialect?: string): FrontEnd => ({
  path: '/v1/completions',
  body: { model, ...TAVERN, ...body },
  ...(dialect && { dialect }),
});

const OOBA = {
  api_type: 'ooba',
  min_length: 0,
  num_beams: 1,
  length_penalty: 1,
  early_stopping: false,
  sampler_priority: ['repetition_penalty', 'dry', 'temperature', 'top_k', 'top_p', 'min_p', 'mirostat'],
  epsilon_cutoff: 0,
  eta_cutoff: 0,
  encoder_repetition_penalty: 1,
  no_repeat_ngram_size: 0,
  penalty_alpha: 0,
  temperature_last: true,
  do_sample: true,
};

const APHRODITE = {
  api_type: 'aphrodite',
  n: 1,
  temperature_last: true,
  eta_cutoff: 0,
  epsilon_cutoff: 0,
  ignore_eos: false,
  spaces_between_special_tokens: true,
  early_stopping: false,
  include_stop_str_in_output: false,
  custom_token_bans: [],
  no_repeat_ngram_size: 0,
};

const reduced = (front: FrontEnd, names: string): FrontEnd => ({ ...front, body: only(front.body, names) });

/** The addresses of Mancer and DreamGen are those of their own servers; the bodies go to ours. */
const SILLY_TAVERN: Readonly<Record<string, FrontEnd>> = {
  ooba: tavern({ ...TAVERN_COMMON, ...OOBA }),
  mancer: tavern({
    ...TAVERN_COMMON,
    api_type: 'mancer',
    n: 1,
    epsilon_cutoff: 0,
    eta_cutoff: 0,
    dynatemp_mode: 0,
    custom_token_bans: [],
    dry_sequence_breakers: BREAKERS,
  }),
  vllm: reduced(tavern({ ...TAVERN_VLLM, logprobs: 5 }), VLLM),
  aphrodite: tavern(APHRODITE),
  tabby: tavern({
    ...TAVERN_COMMON,
    api_type: 'tabby',
    n: 1,
    repetition_decay: 0,
    temperature_last: true,
    speculative_ngram: false,
  }),
  // It sends no model.
  koboldcpp: tavern(
    {
      ...TAVERN_COMMON,
      api_type: 'koboldcpp',
      model: undefined,
      trim_stop: true,
      sampler_order: [6, 0, 1, 3, 4, 2, 5],
      dry_sequence_breakers: BREAKERS,
    },
    'vllm',
  ),
  togetherai: reduced(tavern(TAVERN_COMMON), TOGETHER),
  llamacpp: {
    path: '/completion',
    body: {
      ...TAVERN,
      ...TAVERN_COMMON,
      api_type: 'llamacpp',
      n: 1,
      logit_bias: [],
      grammar: '',
      cache_prompt: true,
      dry_sequence_breakers: BREAKERS,
      samplers: [
        ...['penalties', 'dry', 'top_n_sigma', 'top_k', 'typ_p', 'top_p', 'min_p', 'xtc', 'temperature'],
        'adaptive_p',
      ],
    },
  },
  infermaticai: reduced(tavern({ ...TAVERN_VLLM, logprobs: 5 }), VLLM),
  dreamgen: tavern({ ...TAVERN_COMMON, api_type: 'dreamgen', minimum_message_content_tokens: 0 }),
  featherless: reduced(tavern(TAVERN_COMMON), VLLM),
  huggingface: tavern({ ...TAVERN_COMMON, api_type: 'huggingface', model: 'default', seed: 1_234_567_890 }),
  generic: reduced(
    tavern(TAVERN_COMMON),
    'model prompt stream temperature top_p frequency_penalty presence_penalty stop logprobs max_tokens',
  ),
};

/** lmg-anon/mikupad b2a2a3e (December 2025), mikupad.html, with its default preset: its samplers. */
const MIKUPAD = {
  prompt: PROMPT,
  temperature: 0.7,
  ignore_eos: false,
  penalize_nl: false,
  presence_penalty: 0,
  frequency_penalty: 0,
  top_k: 40,
  top_p: 0.95,
  min_p: 0,
  stream: true,
};

/** LostRuins/lite.koboldai.net 27eb1dc (July 2026), index.html, for an OpenAI-compatible server. */
const KOBOLD_LITE = {
  max_tokens: 768,
  model,
  temperature: 0.75,
  top_p: 0.92,
  prompt: PROMPT,
  stop: STOPS,
  presence_penalty: 0.05,
  logprobs: 5,
};
/** The same with its switch for all parameters. */
const KOBOLD_LITE_ALL = {
  ...KOBOLD_LITE,
  n: 1,
  max_context_length: 6_144,
  max_length: 768,
  rep_pen: 1.05,
  top_k: 100,
  top_a: 0,
  typical: 1,
  tfs: 1,
  rep_pen_range: 360,
  rep_pen_slope: 0.7,
  sampler_order: [6, 0, 1, 3, 4, 2, 5],
  min_p: 0,
  dynatemp_range: 0,
  dynatemp_exponent: 1,
  smoothing_factor: 0,
  smoothing_curve: 1,
  nsigma: 0,
  banned_tokens: [],
  render_special: false,
  dry_multiplier: 0,
  dry_base: 1.75,
  dry_allowed_length: 2,
  dry_penalty_last_n: 320,
  dry_sequence_breakers: BREAKERS,
  xtc_threshold: 0.2,
  xtc_probability: 0,
  logit_bias: {},
  stop_sequence: STOPS,
  use_default_badwordsids: false,
  bypass_eos: false,
};

/** twinnydotdev/twinny 3.23.31, src/extension/provider-options.ts: createStreamRequestBodyFim. */
const TWINNY = { prompt: PROMPT, stream: true, temperature: 0.2 };

export const FRONT_ENDS: Readonly<Record<string, FrontEnd>> = {
  ...Object.fromEntries(Object.entries(SILLY_TAVERN).map(([type, one]) => [`SillyTavern, ${type}`, one])),
  'mikupad, llama.cpp': {
    path: '/completion',
    body: {
      ...MIKUPAD,
      model: '',
      repeat_penalty: 1.1,
      repeat_last_n: 256,
      n_predict: -1,
      n_probs: 10,
      post_sampling_probs: false,
      cache_prompt: true,
    },
  },
  'mikupad, OpenAI': {
    path: '/v1/completions',
    body: {
      ...MIKUPAD,
      model,
      repetition_penalty: 1.1,
      repetition_penalty_range: 256,
      max_tokens: 1_024,
      logprobs: 10,
      ban_eos_token: false,
    },
  },
  'KoboldAI Lite': { path: '/v1/completions', body: KOBOLD_LITE },
  'KoboldAI Lite, all parameters': { path: '/v1/completions', body: KOBOLD_LITE_ALL },
  'twinny, llama.cpp': {
    path: '/completion',
    body: { ...TWINNY, max_tokens: 512 },
  },
  'twinny, LM Studio': { path: '/v1/completions', body: { ...TWINNY, model, max_tokens: 512 } },
  'twinny, text-generation-webui': {
    path: '/v1/completions',
    dialect: 'vllm',
    body: { ...TWINNY, max_tokens: 512 },
  },
};

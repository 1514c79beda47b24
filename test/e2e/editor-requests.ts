/**
 * The bodies that editors send, as their public sources build them. Each names its source: repository, file
 * and commit. The texts are our own.
 */

const FILES = [
  { filename: 'shapes.py', text: 'class Circle:\n    def __init__(self, r):\n        self.r = r\n' },
  { filename: 'areas.py', text: 'def area(circle):\n    return 3.14 * circle.r * circle.r\n' },
];
const BEFORE = 'from shapes import Circle\n\ndef total_area(circles):\n    total = 0\n';
const LINE = '    for circle in ';
const AFTER = '\n    return total\n';

/** Some editors write markers into the prompt: those that the user sets, here the built-in model's. */
const MARKED = `<|gap_prefix|><|gap_suffix|>${AFTER}<|gap_middle|>${BEFORE}${LINE}`;

/**
 * ggml-org/llama.vim, autoload/llama.vim, a1c8e6e40cb45df59b78add5b65d575386832465 (January 2026), with its
 * default settings. It always sends the model, which is empty by default. `time` is Vim's reltime().
 */
const ring = FILES.map((file, index) => ({
  text: file.text,
  time: [1_200 + index, 345_678],
  filename: file.filename,
}));

/** ring_update: prepares the cache, and ignores the answer. */
export const LLAMA_VIM_WARM = {
  id_slot: 0,
  input_prefix: '',
  input_suffix: '',
  input_extra: ring,
  prompt: '',
  n_predict: 0,
  temperature: 0,
  stream: false,
  samplers: [],
  cache_prompt: true,
  t_max_prompt_ms: 1,
  t_max_predict_ms: 1,
  response_fields: [''],
  model: '',
};

/** llama#fim. */
export const LLAMA_VIM_FIM = {
  id_slot: 0,
  input_prefix: BEFORE,
  input_suffix: AFTER,
  input_extra: ring,
  prompt: LINE,
  n_predict: 128,
  stop: [],
  n_indent: 4,
  top_k: 40,
  top_p: 0.9,
  stream: false,
  samplers: ['top_k', 'top_p', 'infill'],
  // 250 ms is its limit for the first completion at a position.
  cache_prompt: true,
  t_max_prompt_ms: 500,
  t_max_predict_ms: 250,
  model: '',
  response_fields: [
    'content',
    ...['prompt_n', 'prompt_ms', 'prompt_per_token_ms', 'prompt_per_second'].map((name) => `timings/${name}`),
    ...['predicted_n', 'predicted_ms', 'predicted_per_token_ms'].map((name) => `timings/${name}`),
    ...['timings/predicted_per_second', 'truncated', 'tokens_cached'],
  ],
};

/**
 * ggml-org/llama.vscode 0.0.63, src/llama-server.ts, 3938fb3568b98e3ddfcf2ce3dd52d9570552b579:
 * createRequestPayload, with the defaults of its package.json. It asks for three completions at once.
 */
export const LLAMA_VSCODE_WARM = {
  id_slot: 0,
  input_prefix: '',
  input_suffix: '',
  input_extra: ring,
  prompt: '',
  n_predict: 0,
  samplers: [],
  cache_prompt: true,
  t_max_prompt_ms: 500,
  t_max_predict_ms: 1,
};

export const LLAMA_VSCODE_FIM = {
  id_slot: 0,
  n_cmpl: 3,
  input_prefix: BEFORE,
  input_suffix: AFTER,
  input_extra: ring,
  prompt: LINE,
  n_predict: 128,
  top_k: 40,
  top_p: 0.99,
  stream: false,
  samplers: ['top_k', 'top_p', 'infill'],
  cache_prompt: true,
  n_indent: 4,
  t_max_prompt_ms: 500,
  t_max_predict_ms: 500,
};

/** The same version, src/language-model-token-limits.ts: for one of several models in /v1/models. */
export const LLAMA_VSCODE_PROPS = '/props?model=continuo-mini&autoload=false';

/** The same version, src/llama-server.ts: countTextTokens. */
export const LLAMA_VSCODE_COUNT = { content: BEFORE, add_special: false, parse_special: true };

/**
 * continuedev/continue 1.3.40, core/llm/llms/LlamaCpp.ts, d0a3c0b626b5bebc3bef4742eec05a0242be0bab: POST
 * /completion. The model is the one that its user configures.
 */
export const CONTINUE = {
  model: 'qwen2.5-coder:1.5b-base',
  prompt: MARKED,
  stream: true,
  n_predict: 48,
  temperature: 0.01,
  stop: ['<|endoftext|>', '<|gap_prefix|>', '<|gap_middle|>', '<|gap_suffix|>', '/src/', '#- coding'],
};

/**
 * milanglacier/minuet-ai.nvim, lua/minuet/backends/common.lua, 01c73e1ba8d08c2a482032b8acece64c66c1da8f, with
 * the settings for llama.cpp of recipes.md, and with the template's own suffix: POST /v1/completions.
 */
export const MINUET_MARKED = {
  model: 'PLACEHOLDER',
  stream: true,
  max_tokens: 56,
  top_p: 0.9,
  prompt: MARKED,
};
export const MINUET_SUFFIX = {
  model: 'default',
  stream: true,
  max_tokens: 56,
  top_p: 0.9,
  prompt: BEFORE + LINE,
  suffix: AFTER,
};

/** zed-industries/zed, crates/edit_prediction/src/fim.rs, 09512d2e88ed9316fbccd988b46378e8d779179c. */
export const ZED = {
  model: 'default',
  max_tokens: 64,
  prompt: `<|fim_prefix|>${BEFORE}${LINE}<|fim_suffix|>${AFTER}<|fim_middle|>`,
  stop: ['<|endoftext|>', '<|fim_prefix|>', '<|fim_middle|>', '<|fim_suffix|>'],
};

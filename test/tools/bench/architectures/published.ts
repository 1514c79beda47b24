/** config.json of published base models, as far as it changes the decoder's shapes. Weights are random. */

export interface PublishedModel {
  readonly name: string;
  readonly config: Readonly<Record<string, unknown>>;
}

const llama = (
  [layers, hidden, heads, kvHeads, width, vocabulary]: readonly number[],
  others: Readonly<Record<string, unknown>> = {},
) => ({
  model_type: 'llama',
  hidden_act: 'silu',
  rms_norm_eps: 1e-5,
  rope_theta: 10_000,
  num_hidden_layers: layers,
  hidden_size: hidden,
  num_attention_heads: heads,
  num_key_value_heads: kvHeads,
  intermediate_size: width,
  vocab_size: vocabulary,
  max_position_embeddings: 4096,
  tie_word_embeddings: true,
  ...others,
});

const gemma3 = (sizes: readonly number[]) =>
  llama(sizes, {
    model_type: 'gemma3_text',
    hidden_activation: 'gelu_pytorch_tanh',
    hidden_act: undefined,
    head_dim: 256,
    query_pre_attn_scalar: 256,
    rope_theta: 1e6,
    rope_local_base_freq: 1e4,
    sliding_window: 512,
    sliding_window_pattern: 6,
    rms_norm_eps: 1e-6,
  });

const neox = (layers: number, hidden: number, heads: number) => ({
  model_type: 'gpt_neox',
  hidden_act: 'gelu',
  layer_norm_eps: 1e-5,
  rotary_pct: 0.25,
  rotary_emb_base: 10_000,
  num_hidden_layers: layers,
  hidden_size: hidden,
  num_attention_heads: heads,
  intermediate_size: 4 * hidden,
  vocab_size: 50_304,
  max_position_embeddings: 2048,
  use_parallel_residual: true,
  tie_word_embeddings: false,
});

const opt = (
  layers: number,
  hidden: number,
  heads: number,
  others: Readonly<Record<string, unknown>> = {},
) => ({
  model_type: 'opt',
  activation_function: 'relu',
  do_layer_norm_before: true,
  word_embed_proj_dim: hidden,
  num_hidden_layers: layers,
  hidden_size: hidden,
  num_attention_heads: heads,
  ffn_dim: 4 * hidden,
  vocab_size: 50_272,
  max_position_embeddings: 2048,
  tie_word_embeddings: true,
  pad_token_id: 1,
  ...others,
});

/** Sizes: layers, hidden, heads, KV heads, MLP, vocabulary. */
export const PUBLISHED: readonly PublishedModel[] = [
  { name: 'SmolLM2-135M', config: llama([30, 576, 9, 3, 1536, 49_152]) },
  { name: 'SmolLM2-360M', config: llama([32, 960, 15, 5, 2560, 49_152]) },
  { name: 'TinyLlama-1.1B', config: llama([22, 2048, 32, 4, 5632, 32_000], { tie_word_embeddings: false }) },
  {
    name: 'Llama-3.2-1B',
    config: llama([16, 2048, 32, 8, 8192, 128_256], {
      rope_theta: 500_000,
      rope_scaling: {
        rope_type: 'llama3',
        factor: 32,
        low_freq_factor: 1,
        high_freq_factor: 4,
        original_max_position_embeddings: 8192,
      },
    }),
  },
  { name: 'Qwen2.5-0.5B', config: llama([24, 896, 14, 2, 4864, 151_936], { model_type: 'qwen2' }) },
  { name: 'Qwen2.5-1.5B', config: llama([28, 1536, 12, 2, 8960, 151_936], { model_type: 'qwen2' }) },
  {
    name: 'Qwen3-0.6B',
    config: llama([28, 1024, 16, 8, 3072, 151_936], { model_type: 'qwen3', head_dim: 128, rope_theta: 1e6 }),
  },
  {
    name: 'Qwen3-1.7B',
    config: llama([28, 2048, 16, 8, 6144, 151_936], { model_type: 'qwen3', head_dim: 128, rope_theta: 1e6 }),
  },
  {
    name: 'OLMo-2-1B',
    config: llama([16, 2048, 16, 16, 8192, 100_352], { model_type: 'olmo2', tie_word_embeddings: false }),
  },
  { name: 'Gemma-3-270M', config: gemma3([18, 640, 4, 1, 2048, 262_144]) },
  { name: 'Gemma-3-1B', config: gemma3([26, 1152, 4, 1, 6912, 262_144]) },
  {
    name: 'StableLM-2-1.6B',
    config: llama([24, 2048, 32, 32, 5632, 100_352], {
      model_type: 'stablelm',
      partial_rotary_factor: 0.25,
      use_qkv_bias: true,
      layer_norm_eps: 1e-5,
      rms_norm_eps: undefined,
      tie_word_embeddings: false,
    }),
  },
  {
    name: 'Qwen3.5-0.8B',
    config: llama([24, 1024, 8, 2, 3584, 248_320], {
      model_type: 'qwen3_5_text',
      head_dim: 256,
      linear_num_key_heads: 16,
      linear_num_value_heads: 16,
      rms_norm_eps: 1e-6,
    }),
  },
  {
    name: 'Mamba2-780M',
    config: {
      model_type: 'mamba2',
      num_hidden_layers: 48,
      hidden_size: 1536,
      num_heads: 48,
      head_dim: 64,
      state_size: 128,
      n_groups: 1,
      vocab_size: 50_288,
      tie_word_embeddings: true,
    },
  },
  { name: 'Pythia-160M', config: neox(12, 768, 12) },
  { name: 'Pythia-410M', config: neox(24, 1024, 16) },
  { name: 'Pythia-1B', config: neox(16, 2048, 8) },
  {
    name: 'GPT-2',
    config: {
      model_type: 'gpt2',
      activation_function: 'gelu_new',
      layer_norm_epsilon: 1e-5,
      n_layer: 12,
      n_embd: 768,
      n_head: 12,
      n_positions: 1024,
      vocab_size: 50_257,
    },
  },
  {
    name: 'GPT-Neo-125M',
    config: {
      model_type: 'gpt_neo',
      activation_function: 'gelu_new',
      layer_norm_epsilon: 1e-5,
      window_size: 256,
      num_layers: 12,
      hidden_size: 768,
      num_heads: 12,
      max_position_embeddings: 2048,
      vocab_size: 50_257,
      attention_types: [[['global', 'local'], 6]],
    },
  },
  {
    name: 'OPT-350M',
    config: opt(24, 1024, 16, { do_layer_norm_before: false, word_embed_proj_dim: 512 }),
  },
  {
    name: 'BLOOM-560M',
    config: {
      model_type: 'bloom',
      n_layer: 24,
      hidden_size: 1024,
      n_head: 16,
      vocab_size: 250_880,
      layer_norm_epsilon: 1e-5,
    },
  },
  {
    name: 'Phi-1.5',
    config: {
      model_type: 'phi',
      hidden_act: 'gelu_new',
      layer_norm_eps: 1e-5,
      partial_rotary_factor: 0.5,
      num_hidden_layers: 24,
      hidden_size: 2048,
      num_attention_heads: 32,
      intermediate_size: 8192,
      vocab_size: 51_200,
      max_position_embeddings: 2048,
      tie_word_embeddings: false,
    },
  },
];

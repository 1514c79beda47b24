import { BASE_MODELS, type BaseModel } from '../../base-models/table.ts';

/** Published base models whose sizes are measured with random weights. */

export type PublishedModel = Pick<BaseModel, 'name' | 'config'>;

/** Those of docs/base-models.md, and sizes of a few whose files were not found as a whole. */
export const PUBLISHED: readonly PublishedModel[] = [
  ...BASE_MODELS,
  {
    name: 'google/gemma-3-1b-pt',
    config: {
      model_type: 'gemma3_text',
      hidden_activation: 'gelu_pytorch_tanh',
      rms_norm_eps: 1e-6,
      rope_theta: 1e6,
      rope_local_base_freq: 1e4,
      num_hidden_layers: 26,
      hidden_size: 1152,
      num_attention_heads: 4,
      num_key_value_heads: 1,
      head_dim: 256,
      query_pre_attn_scalar: 256,
      intermediate_size: 6912,
      vocab_size: 262_144,
      max_position_embeddings: 4096,
      sliding_window: 512,
      sliding_window_pattern: 6,
      tie_word_embeddings: true,
    },
  },
  {
    name: 'Qwen/Qwen3.5-0.8B-Base',
    config: {
      model_type: 'qwen3_5_text',
      hidden_act: 'silu',
      rms_norm_eps: 1e-6,
      rope_theta: 10_000,
      num_hidden_layers: 24,
      hidden_size: 1024,
      num_attention_heads: 8,
      num_key_value_heads: 2,
      head_dim: 256,
      linear_num_key_heads: 16,
      linear_num_value_heads: 16,
      intermediate_size: 3584,
      vocab_size: 248_320,
      max_position_embeddings: 4096,
      tie_word_embeddings: true,
    },
  },
  {
    name: 'state-spaces/mamba2-780m',
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
];

/** One for each size and kind that two cores serve well. */
export const REPRESENTATIVE: readonly string[] = [
  'openai-community/gpt2',
  'HuggingFaceTB/SmolLM2-135M',
  'HuggingFaceTB/SmolLM2-360M',
  'Qwen/Qwen2.5-0.5B',
  'Qwen/Qwen3-0.6B-Base',
  'state-spaces/mamba2-780m',
  'Qwen/Qwen3.5-0.8B-Base',
  'google/gemma-3-1b-pt',
  'meta-llama/Llama-3.2-1B',
  'Qwen/Qwen3-1.7B-Base',
];

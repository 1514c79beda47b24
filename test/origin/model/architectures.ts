/**
 * The sizes in config.json as transformers 4.57 writes them by default, for the decoders that Optimum and
 * onnxruntime-genai's builder export, and the attributes of the same configuration object.
 */

const sizes = (
  layers: number,
  attentionHeads: number,
  kvHeads: number,
  headSize: number,
  maxPositions: number,
) => ({ layers, attentionHeads, kvHeads, headSize, maxPositions });

/** An architecture whose fields have the common names. */
function common(
  architecture: string,
  [hidden_size, num_hidden_layers, num_attention_heads, max_position_embeddings]: readonly [
    hidden: number,
    layers: number,
    heads: number,
    positions: number,
  ],
  others: { readonly num_key_value_heads?: number; readonly head_dim?: number },
) {
  const { num_key_value_heads: kvHeads = num_attention_heads, head_dim = hidden_size / num_attention_heads } =
    others;
  return {
    architecture,
    config: { hidden_size, num_hidden_layers, num_attention_heads, max_position_embeddings, ...others },
    sizes: sizes(num_hidden_layers, num_attention_heads, kvHeads, head_dim, max_position_embeddings),
  };
}

export const ARCHITECTURES = [
  common('arcee', [2560, 32, 32, 4096], { num_key_value_heads: 32, head_dim: 80 }),
  common('cohere', [8192, 40, 64, 8192], { num_key_value_heads: 64 }),
  common('ernie4_5', [1024, 18, 16, 131072], { num_key_value_heads: 2, head_dim: 128 }),
  common('gemma', [3072, 28, 16, 8192], { num_key_value_heads: 16, head_dim: 256 }),
  common('gemma2', [2304, 26, 8, 8192], { num_key_value_heads: 4, head_dim: 256 }),
  common('gemma3_text', [2304, 26, 8, 131072], { num_key_value_heads: 4, head_dim: 256 }),
  common('glm', [4096, 40, 32, 131072], { num_key_value_heads: 2, head_dim: 128 }),
  common('gpt_neox', [6144, 44, 64, 2048], {}),
  common('gpt_oss', [2880, 36, 64, 131072], { num_key_value_heads: 8, head_dim: 64 }),
  common('granite', [4096, 32, 32, 2048], { num_key_value_heads: 32 }),
  common('helium', [2560, 24, 20, 4096], { num_key_value_heads: 20, head_dim: 128 }),
  common('hunyuan_v1_dense', [4096, 32, 32, 2048], { num_key_value_heads: 32 }),
  common('llama', [4096, 32, 32, 2048], { num_key_value_heads: 32, head_dim: 128 }),
  common('mistral', [4096, 32, 32, 131072], { num_key_value_heads: 8 }),
  common('nemotron', [6144, 32, 48, 4096], { head_dim: 128 }),
  common('olmo', [4096, 32, 32, 2048], { num_key_value_heads: 32 }),
  common('olmo2', [4096, 32, 32, 2048], { num_key_value_heads: 32 }),
  common('opt', [768, 12, 12, 2048], {}),
  common('phi', [2048, 24, 32, 2048], { num_key_value_heads: 32 }),
  common('phi3', [3072, 32, 32, 4096], { num_key_value_heads: 32 }),
  common('phimoe', [4096, 32, 32, 131072], { num_key_value_heads: 8 }),
  common('qwen2', [4096, 32, 32, 32768], { num_key_value_heads: 32 }),
  common('qwen3', [4096, 32, 32, 32768], { num_key_value_heads: 32, head_dim: 128 }),
  common('qwen3_moe', [2048, 24, 32, 32768], { num_key_value_heads: 4 }),
  common('smollm3', [2048, 36, 16, 32768], { num_key_value_heads: 4 }),
  common('stablelm', [2560, 32, 32, 4096], { num_key_value_heads: 32 }),
  {
    architecture: 'bloom',
    config: { hidden_size: 64, n_layer: 2, n_head: 8 },
    sizes: sizes(2, 8, 8, 8, Infinity),
  },
  {
    architecture: 'codegen',
    config: { n_embd: 4096, n_layer: 28, n_head: 16, n_positions: 2048 },
    sizes: sizes(28, 16, 16, 256, 2048),
  },
  {
    architecture: 'falcon',
    config: {
      hidden_size: 4544,
      num_hidden_layers: 32,
      num_attention_heads: 71,
      num_kv_heads: 71,
      multi_query: true,
      new_decoder_architecture: false,
      max_position_embeddings: 2048,
      alibi: false,
    },
    sizes: sizes(32, 71, 1, 64, 2048),
  },
  {
    architecture: 'gpt2',
    config: { n_embd: 768, n_layer: 12, n_head: 12, n_positions: 1024 },
    sizes: sizes(12, 12, 12, 64, 1024),
  },
  {
    architecture: 'gpt_bigcode',
    config: {
      n_embd: 768,
      n_layer: 12,
      n_head: 12,
      num_key_value_heads: 1,
      multi_query: true,
      n_positions: 1024,
    },
    sizes: sizes(12, 12, 1, 64, 1024),
  },
  {
    architecture: 'gpt_neo',
    config: { hidden_size: 2048, num_layers: 24, num_heads: 16, max_position_embeddings: 2048 },
    sizes: sizes(24, 16, 16, 128, 2048),
  },
  {
    architecture: 'gptj',
    config: { n_embd: 4096, n_layer: 28, n_head: 16, n_positions: 2048 },
    sizes: sizes(28, 16, 16, 256, 2048),
  },
  {
    architecture: 'chatglm',
    config: {
      hidden_size: 4096,
      num_layers: 28,
      num_attention_heads: 32,
      multi_query_attention: true,
      multi_query_group_num: 2,
      kv_channels: 128,
      seq_length: 8192,
      padded_vocab_size: 65024,
      vocab_size: undefined,
    },
    sizes: { ...sizes(28, 32, 2, 128, 8192), vocabularySize: 65024 },
  },
  common('internlm2', [4096, 32, 32, 32768], { num_key_value_heads: 8 }),
  {
    architecture: 'gemma3',
    config: {
      vocab_size: undefined,
      image_token_index: 262_144,
      text_config: {
        model_type: 'gemma3_text',
        vocab_size: 262_208,
        hidden_size: 2560,
        num_hidden_layers: 34,
        num_attention_heads: 8,
        num_key_value_heads: 4,
        head_dim: 256,
        max_position_embeddings: 131_072,
        sliding_window: 1024,
      },
      vision_config: { hidden_size: 1152, num_hidden_layers: 27, num_attention_heads: 16 },
    },
    sizes: { ...sizes(34, 8, 4, 256, 131_072), slidingWindow: 1024, vocabularySize: 262_208 },
  },
  {
    architecture: 'mpt',
    config: { d_model: 2048, n_layers: 24, n_heads: 16, max_seq_len: 2048 },
    sizes: sizes(24, 16, 16, 128, 2048),
  },
  {
    architecture: 'falcon',
    config: {
      hidden_size: 8192,
      num_hidden_layers: 60,
      num_attention_heads: 128,
      num_kv_heads: 8,
      multi_query: true,
      new_decoder_architecture: true,
      max_position_embeddings: 2048,
    },
    sizes: sizes(60, 128, 8, 64, 2048),
  },
  {
    architecture: 'bloom',
    config: { hidden_size: 64, n_layer: 2, n_head: 8, seq_length: 4096 },
    sizes: sizes(2, 8, 8, 8, 4096),
  },
];

import { type Architecture, type Moved, readRope, readSizes } from './architecture.ts';
import type { GgufKeys } from './gguf-keys.ts';
import { stacked } from './row-order.ts';

/** Architectures with the names of GPT-2 and its relatives. */

/** All queries, all keys, all values in place of those of each KV head together. */
function byKvHead(keys: GgufKeys): readonly Moved[] {
  const { heads, kvHeads, headSize } = readSizes(keys);
  const part = (first: number, count: number) => ({
    source: 0,
    first: first * headSize,
    count: count * headSize,
  });
  const rows = stacked([part(0, heads / kvHeads), part(heads, 1), part(heads + kvHeads, 1)]);
  return [{ from: ['attn_qkv'], rows }];
}

const layerEpsilon = (keys: GgufKeys) => keys.number('attention.layer_norm_epsilon');

function gptSizes(keys: GgufKeys) {
  const { hidden, heads, layers, width, positions } = readSizes(keys);
  return {
    n_embd: hidden,
    n_head: heads,
    n_layer: layers,
    n_inner: width,
    n_positions: positions,
    layer_norm_epsilon: layerEpsilon(keys),
  };
}

export const GPT_ARCHITECTURES: readonly Architecture[] = [
  {
    name: 'gpt2',
    config: (keys, tensors) => ({
      model_type: 'gpt2',
      ...gptSizes(keys),
      // The converter writes four times the hidden size whatever the width is.
      n_inner: tensors.shape('blk.0.ffn_up.weight')[0],
      activation_function: 'gelu_new',
    }),
  },
  {
    name: 'starcoder',
    config: (keys, tensors) => ({
      model_type: 'gpt_bigcode',
      ...gptSizes(keys),
      // The converter writes one KV head also where each head has its own.
      multi_query: tensors.shape('blk.0.attn_qkv.weight')[0] !== 3 * keys.number('embedding_length'),
      activation_function: 'gelu_pytorch_tanh',
    }),
  },
  {
    name: 'gptneox',
    moved: byKvHead,
    config: (keys, tensors) => {
      const { hidden, heads, layers, width, positions, headSize } = readSizes(keys);
      const { rope_theta, partial_rotary_factor = 1 } = readRope(keys, tensors, { headSize, positions });
      return {
        model_type: 'gpt_neox',
        hidden_size: hidden,
        num_attention_heads: heads,
        num_hidden_layers: layers,
        intermediate_size: width,
        max_position_embeddings: positions,
        layer_norm_eps: layerEpsilon(keys),
        rotary_emb_base: rope_theta,
        rotary_pct: partial_rotary_factor,
        use_parallel_residual: keys.flag('use_parallel_residual', true),
        hidden_act: 'gelu',
      };
    },
  },
  {
    name: 'bloom',
    moved: byKvHead,
    config: (keys) => {
      const { hidden, heads, layers, positions } = readSizes(keys);
      return {
        model_type: 'bloom',
        hidden_size: hidden,
        n_head: heads,
        n_layer: layers,
        seq_length: positions,
        layer_norm_epsilon: layerEpsilon(keys),
      };
    },
  },
  {
    name: 'falcon',
    // With two norms, that of the MLP comes first.
    renamed: (tensors) =>
      tensors.has('blk.0.attn_norm_2.weight') ? { attn_norm: 'ffn_norm', attn_norm_2: 'attn_norm' } : {},
    moved: byKvHead,
    config: (keys, tensors) => {
      const { hidden, heads, kvHeads, layers, headSize, positions } = readSizes(keys);
      const isNew = kvHeads > 1;
      return {
        model_type: 'falcon',
        hidden_size: hidden,
        num_attention_heads: heads,
        num_hidden_layers: layers,
        num_kv_heads: kvHeads,
        max_position_embeddings: positions,
        new_decoder_architecture: isNew,
        ...(isNew ? { num_ln_in_parallel_attn: tensors.has('blk.0.attn_norm_2.weight') ? 2 : 1 } : {}),
        multi_query: true,
        parallel_attn: true,
        alibi: false,
        bias: tensors.has('blk.0.attn_qkv.bias'),
        layer_norm_epsilon: layerEpsilon(keys),
        ...readRope(keys, tensors, { headSize, positions }),
      };
    },
  },
  {
    name: 'mpt',
    config: (keys) => {
      const { hidden, heads, kvHeads, layers, width, positions } = readSizes(keys);
      const slope = keys.number('attention.max_alibi_bias', 0);
      return {
        model_type: 'mpt',
        d_model: hidden,
        n_heads: heads,
        n_layers: layers,
        expansion_ratio: width / hidden,
        max_seq_len: positions,
        layer_norm_epsilon: layerEpsilon(keys),
        attn_config: {
          alibi: slope > 0,
          ...(slope > 0 ? { alibi_bias_max: slope } : {}),
          clip_qkv: keys.has('attention.clamp_kqv') ? keys.number('attention.clamp_kqv') : null,
          ...(kvHeads === heads ? {} : { kv_n_heads: kvHeads }),
        },
      };
    },
  },
];

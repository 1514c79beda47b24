import { type Architecture, readRope } from './architecture.ts';
import { SIGMOID } from './expert-architectures.ts';
import type { GgufKeys } from './gguf-keys.ts';
import { BODY, type Config, expertCounts, LAYER } from './llama-architectures.ts';

const NAMES = {
  ...BODY,
  // llama.cpp's name for the norm before the head, too.
  token_embd_norm: 'model.embedding_norm',
  attn_norm: `${LAYER}operator_norm`,
  attn_output: `${LAYER}self_attn.out_proj`,
  attn_q_norm: `${LAYER}self_attn.q_layernorm`,
  attn_k_norm: `${LAYER}self_attn.k_layernorm`,
  ffn_norm: `${LAYER}ffn_norm`,
  ffn_gate: `${LAYER}feed_forward.w1`,
  ffn_up: `${LAYER}feed_forward.w3`,
  ffn_down: `${LAYER}feed_forward.w2`,
  'shortconv.conv': `${LAYER}conv.conv`,
  'shortconv.in_proj': `${LAYER}conv.in_proj`,
  'shortconv.out_proj': `${LAYER}conv.out_proj`,
};

const EXPERTS = {
  ffn_gate_inp: `${LAYER}feed_forward.gate`,
  ffn_gate_exps: `${LAYER}feed_forward.experts.*.w1`,
  ffn_up_exps: `${LAYER}feed_forward.experts.*.w3`,
  ffn_down_exps: `${LAYER}feed_forward.experts.*.w2`,
  exp_probs_b: { bias: `${LAYER}feed_forward.expert_bias` },
};

/** KV heads of each layer; 0 where it has a convolution. @throws ModelError */
function kvHeadsOf(keys: GgufKeys): readonly number[] {
  const layers = keys.number('block_count');
  const heads = keys.list('attention.head_count_kv') ?? [];
  const attending = heads.filter((count) => count > 0);
  const isValid = attending.length > 0 && attending.every((count) => count === attending[0]);
  if (heads.length === layers && isValid) return heads;
  throw keys.fault('attention.head_count_kv', `${layers} numbers: one of all layers with attention, or 0`);
}

const lfm2 =
  (modelType: string, more: (keys: GgufKeys) => Readonly<Record<string, unknown>>): Config =>
  (keys, tensors) => {
    const kvHeads = kvHeadsOf(keys);
    const [hidden, heads] = [keys.number('embedding_length'), keys.number('attention.head_count')];
    const headSize = keys.number('attention.key_length', hidden / heads);
    keys.require('attention.value_length', headSize);
    const positions = keys.number('context_length');
    return {
      model_type: modelType,
      hidden_size: hidden,
      num_attention_heads: heads,
      num_key_value_heads: Math.max(...kvHeads),
      head_dim: headSize,
      num_hidden_layers: kvHeads.length,
      intermediate_size: keys.number('feed_forward_length'),
      max_position_embeddings: positions,
      norm_eps: keys.number('attention.layer_norm_rms_epsilon'),
      conv_L_cache: keys.number('shortconv.l_cache'),
      conv_bias: tensors.has(`blk.${kvHeads.indexOf(0)}.shortconv.conv.bias`),
      layer_types: kvHeads.map((count) => (count > 0 ? 'full_attention' : 'conv')),
      ...readRope(keys, tensors, { headSize, positions }),
      ...more(keys),
    };
  };

/** Architectures with convolutions in place of attention in most layers. */
export const CONVOLUTION_ARCHITECTURES: readonly Architecture[] = [
  {
    name: 'lfm2',
    names: NAMES,
    kernels: ['shortconv.conv'],
    // The converter has computed the width.
    config: lfm2('lfm2', () => ({ block_auto_adjust_ff_dim: false })),
  },
  {
    name: 'lfm2moe',
    names: { ...NAMES, ...EXPERTS },
    kernels: ['shortconv.conv'],
    config: lfm2('lfm2_moe', (keys) => {
      keys.require('expert_gating_func', SIGMOID);
      return {
        ...expertCounts(keys),
        moe_intermediate_size: keys.number('expert_feed_forward_length'),
        num_dense_layers: keys.number('leading_dense_block_count'),
      };
    }),
  },
];

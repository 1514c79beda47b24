import { type Architecture, readRope } from './architecture.ts';
import { SIGMOID } from './expert-architectures.ts';
import type { GgufKeys } from './gguf-keys.ts';
import { BODY, type Config, expertCounts, LAYER } from './llama-architectures.ts';
import { kvHeadsByLayer, sizes } from './state-space-architectures.ts';

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

const lfm2 =
  (modelType: string, more: (keys: GgufKeys) => Readonly<Record<string, unknown>>): Config =>
  (keys, tensors) => {
    const { attends, kvHeads } = kvHeadsByLayer(keys);
    const common = sizes(keys);
    return {
      model_type: modelType,
      ...common,
      num_key_value_heads: kvHeads,
      num_hidden_layers: attends.length,
      intermediate_size: keys.number('feed_forward_length'),
      norm_eps: keys.number('attention.layer_norm_rms_epsilon'),
      conv_L_cache: keys.number('shortconv.l_cache'),
      conv_bias: tensors.has(`blk.${attends.indexOf(false)}.shortconv.conv.bias`),
      layer_types: attends.map((isAttention) => (isAttention ? 'full_attention' : 'conv')),
      ...readRope(keys, tensors, {
        headSize: common.head_dim,
        positions: common.max_position_embeddings,
      }),
      ...more(keys),
    };
  };

/** Architectures with convolutions in place of attention in most layers. */
export const CONVOLUTION_ARCHITECTURES: readonly Architecture[] = [
  {
    name: 'lfm2',
    names: NAMES,
    // The converter has computed the width.
    config: lfm2('lfm2', () => ({ block_auto_adjust_ff_dim: false })),
  },
  {
    name: 'lfm2moe',
    names: { ...NAMES, ...EXPERTS },
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

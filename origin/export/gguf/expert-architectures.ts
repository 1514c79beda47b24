import type { Architecture, StoredTensors } from './architecture.ts';
import type { GgufKeys } from './gguf-keys.ts';
import { attentionBias, BODY, config, EXPERTS, HEAD_NORMS, LAYER, LLAMA } from './llama-architectures.ts';

/** Architectures with ordinary attention whose experts are chosen by corrected or normalized scores. */

/** Value of expert_gating_func for scores by sigmoid. */
export const SIGMOID = 2;

export const sharedExperts = (place: string) => ({
  ffn_gate_shexp: `${LAYER}mlp.${place}.gate_proj`,
  ffn_up_shexp: `${LAYER}mlp.${place}.up_proj`,
  ffn_down_shexp: `${LAYER}mlp.${place}.down_proj`,
});

const DEEPSEEK = {
  ...LLAMA,
  ...HEAD_NORMS,
  ...EXPERTS,
  ...sharedExperts('shared_experts'),
  exp_probs_b: { bias: `${LAYER}mlp.gate.e_score_correction_bias` },
};

/** Layers that predict further tokens follow the others; they are not used. */
export const NEXT_TOKENS = {
  'nextn.eh_proj': `${LAYER}eh_proj`,
  'nextn.embed_tokens': `${LAYER}embed_tokens`,
  'nextn.enorm': `${LAYER}enorm`,
  'nextn.hnorm': `${LAYER}hnorm`,
  'nextn.shared_head_head': `${LAYER}shared_head.head`,
  'nextn.shared_head_norm': `${LAYER}shared_head.norm`,
};

/** Experts as DeepSeek names them. */
export const deepseekExperts = (keys: GgufKeys) => ({
  num_hidden_layers: keys.number('block_count') - keys.number('nextn_predict_layers', 0),
  n_routed_experts: keys.number('expert_count'),
  num_experts_per_tok: keys.number('expert_used_count'),
  n_shared_experts: keys.number('expert_shared_count'),
  moe_intermediate_size: keys.number('expert_feed_forward_length'),
  routed_scaling_factor: keys.number('expert_weights_scale', 1),
});

/** Routing as DeepSeek V3 names it. */
function correctedExperts(keys: GgufKeys, tensors: StoredTensors) {
  keys.require('expert_gating_func', SIGMOID);
  return {
    ...attentionBias(keys, tensors),
    ...deepseekExperts(keys),
    first_k_dense_replace: keys.number('leading_dense_block_count'),
    norm_topk_prob: keys.flag('expert_weights_norm'),
    n_group: keys.number('expert_group_count', 1),
    topk_group: keys.number('expert_group_used_count', 1),
  };
}

const { ffn_norm: _, ...GLM4 } = DEEPSEEK;

/** @throws ModelError if experts have another width than the layer says */
function sameWidth(keys: GgufKeys, ...names: readonly string[]): void {
  for (const name of names) keys.require(name, keys.number('feed_forward_length'));
}

export const EXPERT_ARCHITECTURES: readonly Architecture[] = [
  {
    name: 'glm4moe',
    names: { ...GLM4, ...NEXT_TOKENS, post_attention_norm: `${LAYER}post_attention_layernorm` },
    config: config('glm4_moe', (keys, tensors) => ({
      ...correctedExperts(keys, tensors),
      use_qk_norm: tensors.has('blk.0.attn_q_norm.weight'),
    })),
  },
  {
    name: 'dots1',
    names: DEEPSEEK,
    // The converter does not write the window.
    config: config('dots1', (keys, tensors) => ({
      ...correctedExperts(keys, tensors),
      sliding_window: null,
    })),
  },
  {
    name: 'ernie4_5-moe',
    names: {
      ...LLAMA,
      ...EXPERTS,
      ...sharedExperts('shared_experts'),
      exp_probs_b: { bias: `${LAYER}mlp.moe_statics.e_score_correction_bias` },
    },
    config: config('ernie4_5_moe', (keys) => {
      // The converter divides the width of the dense layers by the KV heads.
      keys.ignore('expert_shared_feed_forward_length');
      return {
        moe_num_experts: keys.number('expert_count'),
        moe_k: keys.number('expert_used_count'),
        moe_intermediate_size: keys.number('expert_feed_forward_length'),
        moe_num_shared_experts: keys.number('expert_shared_count', 0),
        moe_layer_start_index: keys.number('leading_dense_block_count'),
        moe_layer_interval: keys.number('interleave_moe_layer_step'),
      };
    }),
  },
  {
    name: 'minimax-m2',
    names: {
      ...BODY,
      ...HEAD_NORMS,
      ffn_gate_inp: `${LAYER}block_sparse_moe.gate`,
      ffn_gate_exps: `${LAYER}block_sparse_moe.experts.*.w1`,
      ffn_down_exps: `${LAYER}block_sparse_moe.experts.*.w2`,
      ffn_up_exps: `${LAYER}block_sparse_moe.experts.*.w3`,
      exp_probs_b: { bias: `${LAYER}block_sparse_moe.e_score_correction_bias` },
    },
    config: config('minimax_m2', (keys) => {
      keys.require('expert_gating_func', SIGMOID);
      sameWidth(keys, 'expert_feed_forward_length');
      return {
        num_local_experts: keys.number('expert_count'),
        num_experts_per_tok: keys.number('expert_used_count'),
      };
    }),
  },
  {
    name: 'hunyuan-moe',
    names: {
      ...LLAMA,
      ...EXPERTS,
      ...sharedExperts('shared_mlp'),
      ffn_gate_inp: `${LAYER}mlp.gate.wg`,
      attn_q_norm: `${LAYER}self_attn.query_layernorm`,
      attn_k_norm: `${LAYER}self_attn.key_layernorm`,
    },
    config: config('hunyuan_v1_moe', (keys, tensors) => {
      keys.require('expert_shared_count', 1);
      sameWidth(keys, 'expert_feed_forward_length', 'expert_shared_feed_forward_length');
      return {
        ...attentionBias(keys, tensors),
        num_experts: keys.number('expert_count'),
        moe_topk: keys.number('expert_used_count'),
      };
    }),
  },
];

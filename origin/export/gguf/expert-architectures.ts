import { type Architecture, llamaConfig, type StoredTensors } from './architecture.ts';
import type { GgufKeys } from './gguf-keys.ts';
import { attentionBias, config } from './llama-architectures.ts';
import { after } from './row-order.ts';

/** Architectures with ordinary attention whose experts are not those of Mixtral or Qwen. */

/** Value of expert_gating_func for scores by sigmoid. */
export const SIGMOID = 2;

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

/** @throws ModelError if experts have another width than the layer says */
function sameWidth(keys: GgufKeys, ...names: readonly string[]): void {
  for (const name of names) keys.require(name, keys.number('feed_forward_length'));
}

/** Only the largest model has no norms of queries and keys. What the file lacks has its default. */
const llama4Config: Architecture['config'] = (keys, tensors) => {
  const { intermediate_size: width, ...fields } = llamaConfig('llama4_text', keys, tensors);
  return {
    ...fields,
    intermediate_size: keys.number('expert_feed_forward_length'),
    intermediate_size_mlp: width,
    num_local_experts: keys.number('expert_count'),
    num_experts_per_tok: keys.number('expert_used_count'),
    interleave_moe_layer_step: keys.number('interleave_moe_layer_step'),
    use_qk_norm: keys.number('expert_count') !== 128,
  };
};

export const EXPERT_ARCHITECTURES: readonly Architecture[] = [
  {
    name: 'llama4',
    moved: (keys) => [
      { from: ['ffn_gate_exps', 'ffn_up_exps'], rows: after(keys.number('expert_feed_forward_length')) },
    ],
    config: llama4Config,
  },
  {
    name: 'glm4moe',
    config: config('glm4_moe', (keys, tensors) => ({
      ...correctedExperts(keys, tensors),
      use_qk_norm: tensors.has('blk.0.attn_q_norm.weight'),
    })),
  },
  {
    name: 'dots1',
    // The converter does not write the window.
    config: config('dots1', (keys, tensors) => ({
      ...correctedExperts(keys, tensors),
      sliding_window: null,
    })),
  },
  {
    name: 'ernie4_5-moe',
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

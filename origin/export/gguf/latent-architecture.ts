import { type Architecture, readRope, type StoredTensors } from './architecture.ts';
import { deepseekExperts, SIGMOID } from './expert-architectures.ts';
import type { GgufKeys } from './gguf-keys.ts';
import { stacked } from './row-order.ts';

/** DeepSeek's and MiniCPM 3's latent attention. */

const SOFTMAX = 1;

/** Values of a head: rotated and plain ones of keys, and those of values. */
function headSizes(keys: GgufKeys) {
  // Early files have the keys and values of each head, later ones also the latent vector as those of one.
  const [key, value] = ['attention.key_length', 'attention.value_length'];
  const rotated = keys.number('rope.dimension_count');
  keys.ignore(key, value, 'attention.head_count_kv');
  return {
    rotated,
    plain: keys.number(`${key}_mla`, keys.number(key)) - rotated,
    values: keys.number(`${value}_mla`, keys.number(value)),
  };
}

/** YaRN's factor of all dimensions: the converter writes a tenth of it, and that both factors are equal. */
function scaling(keys: GgufKeys, tensors: StoredTensors, positions: number) {
  const { rotated } = headSizes(keys);
  const rope = readRope(keys, tensors, { headSize: rotated, positions });
  const share = 10 * keys.number('rope.scaling.yarn_log_multiplier', 0);
  if (share === 0 || !('rope_scaling' in rope)) return rope;
  return { ...rope, rope_scaling: { ...rope.rope_scaling, mscale: share, mscale_all_dim: share } };
}

function routing(keys: GgufKeys) {
  const isCorrected = keys.number('expert_gating_func', SOFTMAX) === SIGMOID;
  // Early files lack the groups of experts. How many the model has is unknown then.
  const groups = keys.number('expert_group_count');
  const common = {
    n_group: groups,
    topk_group: keys.number('expert_group_used_count'),
    norm_topk_prob: keys.flag('expert_weights_norm', false),
  };
  if (isCorrected) return { model_type: 'deepseek_v3', ...common };
  keys.require('expert_gating_func', SOFTMAX);
  const method = groups > 1 ? 'group_limited_greedy' : 'greedy';
  return { model_type: 'deepseek_v2', ...common, topk_method: method };
}

function config(keys: GgufKeys, tensors: StoredTensors) {
  const { rotated, plain, values } = headSizes(keys);
  const positions = keys.number('context_length');
  const heads = keys.number('attention.head_count');
  return {
    ...routing(keys),
    hidden_size: keys.number('embedding_length'),
    num_attention_heads: heads,
    num_key_value_heads: heads,
    intermediate_size: keys.number('feed_forward_length'),
    max_position_embeddings: positions,
    rms_norm_eps: keys.number('attention.layer_norm_rms_epsilon'),
    qk_rope_head_dim: rotated,
    qk_nope_head_dim: plain,
    v_head_dim: values,
    kv_lora_rank: keys.number('attention.kv_lora_rank'),
    q_lora_rank: keys.optionalNumber('attention.q_lora_rank'),
    attention_bias: tensors.has('blk.0.attn_kv_a_mqa.bias'),
    ...deepseekExperts(keys),
    first_k_dense_replace: keys.number('leading_dense_block_count'),
    ...scaling(keys, tensors, positions),
  };
}

/** The file has neither the multipliers nor the size of values, which have their defaults. */
function minicpm3Config(keys: GgufKeys, tensors: StoredTensors) {
  const rotated = keys.number('rope.dimension_count');
  const positions = keys.number('context_length');
  return {
    model_type: 'minicpm3',
    hidden_size: keys.number('embedding_length'),
    num_attention_heads: keys.number('attention.head_count'),
    num_key_value_heads: keys.number('attention.head_count_kv'),
    num_hidden_layers: keys.number('block_count'),
    intermediate_size: keys.number('feed_forward_length'),
    max_position_embeddings: positions,
    rms_norm_eps: keys.number('attention.layer_norm_rms_epsilon'),
    qk_rope_head_dim: rotated,
    qk_nope_head_dim: keys.number('attention.key_length') - rotated,
    kv_lora_rank: keys.number('attention.kv_lora_rank'),
    q_lora_rank: keys.optionalNumber('attention.q_lora_rank'),
    ...readRope(keys, tensors, { headSize: rotated, positions }),
  };
}

export const LATENT_ARCHITECTURES: readonly Architecture[] = [
  {
    name: 'deepseek2',
    moved: (keys) => {
      const { plain, values } = headSizes(keys);
      const rows = stacked([
        { source: 0, first: 0, count: plain },
        { source: 1, first: 0, count: values },
      ]);
      return [{ from: ['attn_k_b', 'attn_v_b'], turned: [true], rows, flat: true }];
    },
    config,
  },
  { name: 'minicpm3', config: minicpm3Config },
];

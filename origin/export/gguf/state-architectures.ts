import { type Architecture, anyLayerHas, headSizeOf, readRope, type StoredTensors } from './architecture.ts';
import { deepseekExperts, SIGMOID } from './expert-architectures.ts';
import type { GgufKeys } from './gguf-keys.ts';
import { type Config, expertCounts, graniteMultipliers } from './llama-architectures.ts';
import { after } from './row-order.ts';

/** Architectures with state spaces (Mamba 2) or convolutions in place of attention, or beside it. */

/** Sizes of an architecture whose heads may differ by layer. */
function sizes(keys: GgufKeys) {
  const headSize = headSizeOf(keys);
  keys.require('attention.value_length', headSize);
  return {
    hidden_size: keys.number('embedding_length'),
    num_attention_heads: keys.number('attention.head_count'),
    head_dim: headSize,
    max_position_embeddings: keys.number('context_length'),
  };
}

function stateSpaceSizes(keys: GgufKeys) {
  const heads = keys.number('ssm.time_step_rank');
  return {
    heads,
    valueSize: keys.number('ssm.inner_size') / heads,
    groups: keys.number('ssm.group_count'),
    keySize: keys.number('ssm.state_size'),
    length: keys.number('ssm.conv_kernel'),
  };
}

function mambaFields(keys: GgufKeys, tensors: StoredTensors) {
  const { heads, valueSize, groups, keySize, length } = stateSpaceSizes(keys);
  return {
    mamba_n_heads: heads,
    mamba_d_head: valueSize,
    mamba_n_groups: groups,
    mamba_d_state: keySize,
    mamba_d_conv: length,
    mamba_conv_bias: anyLayerHas(keys, tensors, 'ssm_conv1d.bias'),
    mamba_proj_bias: anyLayerHas(keys, tensors, 'ssm_in.bias'),
  };
}

/** KV heads of the layers with attention; the others have 0. @throws ModelError */
function kvHeadsByLayer(keys: GgufKeys, layers = keys.number('block_count')) {
  const counts = keys.list('attention.head_count_kv') ?? [];
  const attending = counts.filter((count) => count > 0);
  const isValid = attending.length > 0 && attending.every((count) => count === attending[0]);
  if (counts.length === layers && isValid) return { attends: counts.map(Boolean), kvHeads: attending[0]! };
  throw keys.fault('attention.head_count_kv', `${layers} numbers: one of all layers with attention, or 0`);
}

function graniteHybrid(keys: GgufKeys, tensors: StoredTensors) {
  const { attends, kvHeads } = kvHeadsByLayer(keys);
  // Bamba has its positions and the names of its MLP in the same architecture.
  keys.require('rope.scaling.finetuned', false);
  keys.ignore('rope.freq_base', 'rope.dimension_count', 'rope.scaling.type');
  return {
    model_type: 'granitemoehybrid',
    ...sizes(keys),
    num_key_value_heads: kvHeads,
    num_hidden_layers: attends.length,
    layer_types: attends.map((isAttention) => (isAttention ? 'attention' : 'mamba')),
    position_embedding_type: 'nope',
    rms_norm_eps: keys.number('attention.layer_norm_rms_epsilon'),
    intermediate_size: keys.number('feed_forward_length'),
    shared_intermediate_size: keys.number('expert_shared_feed_forward_length'),
    num_local_experts: keys.number('expert_count', 0),
    num_experts_per_tok: keys.number('expert_used_count', 0),
    attention_bias: anyLayerHas(keys, tensors, 'attn_q.bias'),
    mamba_expand: keys.number('ssm.inner_size') / keys.number('embedding_length'),
    ...mambaFields(keys, tensors),
    ...graniteMultipliers(keys),
  };
}

/** The converter has multiplied the weights by the multipliers. */
function falconH1(keys: GgufKeys, tensors: StoredTensors) {
  // A tied head would lack its own multiplier.
  tensors.shape('output.weight');
  return {
    model_type: 'falcon_h1',
    ...sizes(keys),
    num_key_value_heads: keys.number('attention.head_count_kv'),
    num_hidden_layers: keys.number('block_count'),
    intermediate_size: keys.number('feed_forward_length'),
    rms_norm_eps: keys.number('attention.layer_norm_rms_epsilon'),
    rope_theta: keys.number('rope.freq_base'),
    mamba_d_ssm: keys.number('ssm.inner_size'),
    ...mambaFields(keys, tensors),
    projectors_bias: tensors.has('blk.0.ssm_out.bias'),
    mamba_rms_norm: tensors.has('blk.0.ssm_norm.weight'),
    mamba_norm_before_gate: false,
    // The converter multiplies these biases by the factor of the inputs, which the file does not have.
    attention_bias: false,
    mlp_bias: tensors.has('blk.0.ffn_up.bias'),
  };
}

/** Layers of one block each. */
const blockOf = (tensors: StoredTensors, layer: number): string => {
  const blocks = { ssm_in: 'mamba', attn_q: 'attention', ffn_gate_inp: 'moe' };
  const block = Object.entries(blocks).find(([name]) => tensors.has(`blk.${layer}.${name}.weight`));
  return block?.[1] ?? 'mlp';
};

function nemotronH(keys: GgufKeys, tensors: StoredTensors) {
  const { heads, valueSize, groups, keySize, length } = stateSpaceSizes(keys);
  const layers = keys.number('block_count') - keys.number('nextn_predict_layers', 0);
  const blocks = Array.from({ length: layers }, (_, layer) => blockOf(tensors, layer));
  const mlp = blocks.indexOf('mlp');
  const rms = 'attention.layer_norm_rms_epsilon';
  const epsilon = keys.optionalNumber('attention.layer_norm_epsilon') ?? keys.number(rms);
  keys.require(rms, epsilon);
  // The converter writes widths of 0 if config.json has a list of blocks.
  keys.ignore('feed_forward_length', 'rope.freq_base', 'rope.dimension_count', 'rope.scaling.type');
  return {
    model_type: 'nemotron_h',
    ...sizes(keys),
    num_key_value_heads: kvHeadsByLayer(keys).kvHeads,
    num_hidden_layers: layers,
    layers_block_type: blocks,
    intermediate_size:
      mlp < 0 ? keys.number('expert_feed_forward_length') : tensors.shape(`blk.${mlp}.ffn_up.weight`)[0],
    layer_norm_epsilon: epsilon,
    mamba_num_heads: heads,
    mamba_head_dim: valueSize,
    n_groups: groups,
    ssm_state_size: keySize,
    conv_kernel: length,
    use_conv_bias: anyLayerHas(keys, tensors, 'ssm_conv1d.bias'),
    use_bias: anyLayerHas(keys, tensors, 'ssm_in.bias'),
    mlp_bias: anyLayerHas(keys, tensors, 'ffn_up.bias'),
    attention_bias: anyLayerHas(keys, tensors, 'attn_q.bias'),
  };
}

/**
 * The file has no limits of the steps (`time_step_limit`). llama.cpp computes without them, so they are open
 * here too.
 */
function mamba2(keys: GgufKeys, tensors: StoredTensors) {
  const { heads, valueSize, groups, keySize, length } = stateSpaceSizes(keys);
  const hidden = keys.number('embedding_length');
  keys.require('feed_forward_length', 0);
  keys.require('attention.head_count', 0);
  // The converter writes 2²⁰.
  keys.ignore('context_length');
  return {
    model_type: 'mamba2',
    hidden_size: hidden,
    num_hidden_layers: keys.number('block_count'),
    layer_norm_epsilon: keys.number('attention.layer_norm_rms_epsilon'),
    num_heads: heads,
    head_dim: valueSize,
    expand: (heads * valueSize) / hidden,
    n_groups: groups,
    state_size: keySize,
    conv_kernel: length,
    use_conv_bias: anyLayerHas(keys, tensors, 'ssm_conv1d.bias'),
    use_bias: anyLayerHas(keys, tensors, 'ssm_in.bias'),
  };
}

/** Convolutions in place of attention in most layers. */
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

export const STATE_ARCHITECTURES: readonly Architecture[] = [
  {
    name: 'granitehybrid',
    pairs: true,
    moved: (keys) => {
      const shared = after(keys.number('expert_shared_feed_forward_length'));
      return [
        { from: ['ffn_gate', 'ffn_up'], rows: shared },
        { from: ['ffn_gate_shexp', 'ffn_up_shexp'], rows: shared },
        { from: ['ffn_gate_exps', 'ffn_up_exps'], rows: after(keys.number('feed_forward_length')) },
      ];
    },
    config: graniteHybrid,
  },
  { name: 'falcon-h1', config: falconH1 },
  { name: 'mamba2', config: mamba2 },
  { name: 'nemotron_h', pairs: true, config: nemotronH },
  {
    name: 'nemotron_h_moe',
    pairs: true,
    config: (keys, tensors) => ({
      ...nemotronH(keys, tensors),
      ...deepseekExperts(keys),
      norm_topk_prob: keys.flag('expert_weights_norm'),
      n_group: keys.number('expert_group_count', 1),
      topk_group: keys.number('expert_group_used_count', 1),
      moe_shared_expert_intermediate_size: keys.number('expert_shared_feed_forward_length'),
    }),
  },
  {
    name: 'lfm2',
    // The converter has computed the width.
    config: lfm2('lfm2', () => ({ block_auto_adjust_ff_dim: false })),
  },
  {
    name: 'lfm2moe',
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

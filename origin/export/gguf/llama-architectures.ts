import {
  type Architecture,
  anyLayerHas,
  layerTypes,
  llamaConfig,
  readSizes,
  type StoredTensors,
} from './architecture.ts';
import type { GgufKeys } from './gguf-keys.ts';
import { after, alternating } from './row-order.ts';

/** Architectures with rotary positions whose keys are those of Llama, with what each of them adds. */

export type Config = Architecture['config'];
type Fields = Readonly<Record<string, unknown>>;

/** Llama's fields of a model type, and more. */
export const config =
  (modelType: string, more: (keys: GgufKeys, tensors: StoredTensors) => Fields = () => ({})): Config =>
  (keys, tensors) => ({ ...llamaConfig(modelType, keys, tensors), ...more(keys, tensors) });

export const attentionBias = (keys: GgufKeys, tensors: StoredTensors) => ({
  attention_bias: anyLayerHas(keys, tensors, 'attn_q.bias'),
});

const biases = (keys: GgufKeys, tensors: StoredTensors) => ({
  ...attentionBias(keys, tensors),
  mlp_bias: tensors.has('blk.0.ffn_up.bias'),
});

export const expertCounts = (keys: GgufKeys) => ({
  num_experts: keys.number('expert_count'),
  num_experts_per_tok: keys.number('expert_used_count'),
});

/** Qwen's experts; layers without router are dense. */
const qwenExperts = (normalized: boolean) => (keys: GgufKeys, tensors: StoredTensors) => ({
  ...expertCounts(keys),
  moe_intermediate_size: keys.number('expert_feed_forward_length'),
  norm_topk_prob: normalized,
  decoder_sparse_step: 1,
  mlp_only_layers: Array.from({ length: keys.number('block_count') }, (_, layer) => layer).filter(
    (layer) => !tensors.has(`blk.${layer}.ffn_gate_inp.weight`),
  ),
});

export const qwenSharedExperts = (normalized: boolean) => (keys: GgufKeys, tensors: StoredTensors) => ({
  ...qwenExperts(normalized)(keys, tensors),
  shared_expert_intermediate_size: keys.number('expert_shared_feed_forward_length'),
});

/** Layers are counted where the file does not tell the model: the largest ones have another scale. */
function gemmaScale(keys: GgufKeys, largest: number) {
  const { hidden, heads, headSize, layers } = readSizes(keys);
  return { query_pre_attn_scalar: layers === largest ? hidden / heads : headSize };
}

const GELU_TANH = { hidden_activation: 'gelu_pytorch_tanh' };

export const graniteMultipliers = (keys: GgufKeys) => ({
  attention_multiplier: keys.number('attention.scale', 1),
  embedding_multiplier: keys.number('embedding_scale', 1),
  residual_multiplier: keys.number('residual_scale', 1),
  logits_scaling: keys.number('logit_scale', 1),
});

/**
 * Granite 3, and Granite 4 without states. Files of the latter have the keys of its hybrids, and the width of
 * the MLP under another name.
 */
function graniteConfig(keys: GgufKeys, tensors: StoredTensors) {
  keys.ignore('ssm.conv_kernel', 'ssm.state_size', 'ssm.group_count', 'ssm.inner_size', 'ssm.time_step_rank');
  keys.require('expert_count', 0);
  keys.require('expert_used_count', 0);
  const config = llamaConfig('granite', keys, tensors);
  return {
    ...config,
    intermediate_size: keys.number('expert_shared_feed_forward_length', config.intermediate_size),
    ...attentionBias(keys, tensors),
    ...graniteMultipliers(keys),
  };
}

/**
 * MiniCPM computes as Granite does. Files of early converters lack the multipliers; those of MiniCPM-2B hold
 * then.
 */
function minicpmConfig(keys: GgufKeys, tensors: StoredTensors) {
  const { hidden, headSize, layers } = readSizes(keys);
  return {
    ...llamaConfig('granite', keys, tensors),
    attention_multiplier: headSize ** -0.5,
    embedding_multiplier: keys.number('embedding_scale', 12),
    residual_multiplier: keys.number('residual_scale', 1.4 / Math.sqrt(layers)),
    logits_scaling: keys.number('logit_scale', hidden / 256),
  };
}

function olmo2Config(keys: GgufKeys, tensors: StoredTensors) {
  if (!keys.has('attention.sliding_window')) return llamaConfig('olmo2', keys, tensors);
  const fields = llamaConfig('olmo3', keys, tensors);
  if (keys.number('rope.freq_base_swa', fields.rope_theta) !== fields.rope_theta) {
    throw keys.fault('rope.freq_base_swa', `equal to rope.freq_base, ${fields.rope_theta}`);
  }
  return {
    ...fields,
    sliding_window: keys.number('attention.sliding_window'),
    layer_types: layerTypes(keys, (layer) => (layer + 1) % 4 !== 0),
  };
}

/** Ministral 3 scales its queries by their position, Mistral Small 3.1 does not. YaRN's factors are equal. */
function mistral3Config(keys: GgufKeys, tensors: StoredTensors) {
  if (!keys.has('attention.temperature_scale')) return llamaConfig('mistral', keys, tensors);
  const { rope_theta, rope_scaling, ...fields } = llamaConfig('ministral3', keys, tensors);
  const share = keys.number('rope.scaling.yarn_log_multiplier');
  return {
    ...fields,
    rope_parameters: {
      rope_theta,
      ...rope_scaling,
      mscale: share,
      mscale_all_dim: share,
      llama_4_scaling_beta: keys.number('attention.temperature_scale'),
    },
  };
}

/** The bases of global and local layers differ; only the global ones are scaled. */
const gemma3Config: Config = (keys, tensors) => ({
  ...llamaConfig('gemma3_text', keys, tensors),
  ...GELU_TANH,
  ...gemmaScale(keys, 62),
  rope_theta: keys.number('rope.freq_base', 1_000_000),
  rope_local_base_freq: keys.number('rope.freq_base_swa', 10_000),
  final_logit_softcapping: keys.has('final_logit_softcapping')
    ? keys.number('final_logit_softcapping')
    : null,
  sliding_window: keys.number('attention.sliding_window', keys.number('context_length')),
  layer_types: layerTypes(keys, (layer) => keys.has('attention.sliding_window') && (layer + 1) % 6 !== 0),
});

/** Only the model of 64 layers has windows, unless the file says so. */
function exaone4Windows(keys: GgufKeys) {
  const windows = keys.has('attention.sliding_window_pattern') || keys.number('block_count') === 64;
  const size = keys.number('attention.sliding_window', windows ? 4096 : 0);
  if (!windows || size === 0) return {};
  return { sliding_window: size, layer_types: layerTypes(keys, (layer) => (layer + 1) % 4 !== 0) };
}

const gptOssConfig: Config = (keys, tensors) => ({
  ...llamaConfig('gpt_oss', keys, tensors),
  intermediate_size: keys.number('expert_feed_forward_length'),
  ...expertCounts(keys),
  attention_bias: true,
  sliding_window: keys.number('attention.sliding_window'),
  layer_types: layerTypes(keys, (layer) => layer % 2 === 0),
  rope_scaling: { ...(llamaConfig('', keys, tensors).rope_scaling ?? {}), truncate: false },
});

export const LLAMA_ARCHITECTURES: readonly Architecture[] = [
  {
    name: 'llama',
    pairs: true,
    config: (keys, tensors) =>
      keys.number('expert_count', 0) === 0
        ? config('llama', biases)(keys, tensors)
        : config('mixtral', expertCounts)(keys, tensors),
  },
  { name: 'internlm2', pairs: true, config: config('llama', biases) },
  { name: 'minicpm', pairs: true, config: minicpmConfig },
  { name: 'mistral3', pairs: true, config: mistral3Config },
  { name: 'qwen2', config: config('qwen2') },
  { name: 'qwen2moe', config: config('qwen2_moe', qwenSharedExperts(false)) },
  { name: 'qwen3', config: config('qwen3', attentionBias) },
  { name: 'qwen3moe', config: config('qwen3_moe', qwenExperts(true)) },
  { name: 'gemma', config: config('gemma', () => GELU_TANH) },
  {
    name: 'gemma2',
    config: config('gemma2', (keys) => ({
      ...GELU_TANH,
      ...gemmaScale(keys, 46),
      attn_logit_softcapping: keys.number('attn_logit_softcapping', 50),
      final_logit_softcapping: keys.number('final_logit_softcapping', 30),
      sliding_window: keys.number('attention.sliding_window', 4096),
      layer_types: layerTypes(keys, (layer) => layer % 2 === 0),
    })),
  },
  { name: 'gemma3', config: gemma3Config },
  {
    name: 'olmo',
    pairs: true,
    config: config('olmo', (keys) => ({
      layer_norm_eps: null,
      clip_qkv: keys.has('attention.clamp_kqv') ? keys.number('attention.clamp_kqv') : null,
    })),
  },
  { name: 'olmo2', config: olmo2Config },
  {
    name: 'olmoe',
    config: config('olmoe', (keys) => ({ ...expertCounts(keys), norm_topk_prob: false })),
  },
  { name: 'smollm3', pairs: true, config: config('smollm3') },
  { name: 'granite', pairs: true, config: graniteConfig },
  {
    name: 'granitemoe',
    moved: (keys) => [
      { from: ['ffn_gate_exps', 'ffn_up_exps'], rows: after(keys.number('feed_forward_length')) },
    ],
    pairs: true,
    config: config('granitemoe', (keys) => ({ ...graniteMultipliers(keys), ...expertCounts(keys) })),
  },
  { name: 'arcee', pairs: true, config: config('arcee', () => ({ hidden_act: 'relu2' })) },
  { name: 'ernie4_5', config: config('ernie4_5') },
  { name: 'exaone4', config: config('exaone4', exaone4Windows) },
  {
    name: 'seed_oss',
    config: config('seed_oss', (keys, tensors) => ({
      ...attentionBias(keys, tensors),
      attention_out_bias: tensors.has('blk.0.attn_output.bias'),
    })),
  },
  { name: 'hunyuan-dense', config: config('hunyuan_v1_dense', attentionBias) },
  { name: 'apertus', scalars: ['xielu.alpha_p', 'xielu.alpha_n'], config: config('apertus') },
  {
    name: 'gpt-oss',
    moved: () => [{ from: ['ffn_gate_exps', 'ffn_up_exps'], rows: alternating }],
    config: gptOssConfig,
  },
  {
    name: 'command-r',
    config: config('cohere', (keys, tensors) => ({
      logit_scale: keys.number('logit_scale', 1),
      use_qk_norm: tensors.has('blk.0.attn_q_norm.weight'),
    })),
  },
  {
    name: 'cohere2',
    config: config('cohere2', (keys) => ({
      logit_scale: keys.number('logit_scale'),
      sliding_window: keys.number('attention.sliding_window'),
      layer_types: layerTypes(keys, (layer) => (layer + 1) % 4 !== 0),
    })),
  },
  {
    name: 'phi2',
    config: config('phi', (_, tensors) => ({
      // The converter writes four times the hidden size whatever the width is.
      intermediate_size: tensors.shape('blk.0.ffn_up.weight')[0],
      hidden_act: 'gelu_new',
    })),
  },
  {
    name: 'phi3',
    config: config('phi3', (keys) => ({
      sliding_window: keys.number('attention.sliding_window', 0) || null,
    })),
  },
  {
    name: 'starcoder2',
    config: config('starcoder2', (keys, tensors) => ({
      norm_epsilon: keys.number('attention.layer_norm_epsilon'),
      layer_norm_eps: null,
      use_bias: tensors.has('blk.0.attn_q.bias'),
      hidden_act: 'gelu_pytorch_tanh',
    })),
  },
  {
    name: 'stablelm',
    config: config('stablelm', (keys, tensors) => ({
      use_parallel_residual:
        keys.flag('use_parallel_residual', true) && !tensors.has('blk.0.ffn_norm.weight'),
      use_qkv_bias: tensors.has('blk.0.attn_q.bias'),
      qk_layernorm: tensors.has('blk.0.attn_q_norm.weight'),
    })),
  },
  {
    name: 'nemotron',
    config: config('nemotron', (keys) => ({
      norm_eps: keys.number('attention.layer_norm_epsilon'),
      layer_norm_eps: null,
      rms_norm_eps: null,
      hidden_act: 'relu2',
    })),
  },
  { name: 'chatglm', config: config('glm', attentionBias) },
  { name: 'glm4', config: config('glm4', attentionBias) },
];

import {
  type Architecture,
  anyLayerHas,
  layerTypes,
  llamaConfig,
  readSizes,
  type StoredTensors,
} from './architecture.ts';
import type { GgufKeys } from './gguf-keys.ts';
import { after } from './row-order.ts';

/** Architectures whose tensors Hugging Face names as Llama's, with what each of them adds. */

export const LAYER = 'model.layers.*.';

export const BODY = {
  token_embd: 'model.embed_tokens',
  output_norm: 'model.norm',
  output: 'lm_head',
  attn_norm: `${LAYER}input_layernorm`,
  attn_q: `${LAYER}self_attn.q_proj`,
  attn_k: `${LAYER}self_attn.k_proj`,
  attn_v: `${LAYER}self_attn.v_proj`,
  attn_output: `${LAYER}self_attn.o_proj`,
  ffn_norm: `${LAYER}post_attention_layernorm`,
};
export const HEAD_NORMS = {
  attn_q_norm: `${LAYER}self_attn.q_norm`,
  attn_k_norm: `${LAYER}self_attn.k_norm`,
};
const MLP = {
  ffn_gate: `${LAYER}mlp.gate_proj`,
  ffn_up: `${LAYER}mlp.up_proj`,
  ffn_down: `${LAYER}mlp.down_proj`,
};
export const EXPERTS = {
  ffn_gate_inp: `${LAYER}mlp.gate`,
  ffn_gate_exps: `${LAYER}mlp.experts.*.gate_proj`,
  ffn_up_exps: `${LAYER}mlp.experts.*.up_proj`,
  ffn_down_exps: `${LAYER}mlp.experts.*.down_proj`,
};
export const LLAMA = { ...BODY, ...MLP };
/** Beside Qwen's experts. */
export const SHARED_EXPERT = {
  ffn_gate_inp_shexp: `${LAYER}mlp.shared_expert_gate`,
  ffn_gate_shexp: `${LAYER}mlp.shared_expert.gate_proj`,
  ffn_up_shexp: `${LAYER}mlp.shared_expert.up_proj`,
  ffn_down_shexp: `${LAYER}mlp.shared_expert.down_proj`,
};
/** OLMo 2, EXAONE 4: norms of the results only. */
const NORMS_AFTER = {
  post_attention_norm: `${LAYER}post_attention_layernorm`,
  post_ffw_norm: `${LAYER}post_feedforward_layernorm`,
};
/** Gemma 2 and 3: norms before and after. */
export const NORMS_AROUND = { ...NORMS_AFTER, ffn_norm: `${LAYER}pre_feedforward_layernorm` };

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

const gemma = { names: { ...LLAMA, ...HEAD_NORMS, ...NORMS_AROUND }, shiftedNorms: true };
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

export const LLAMA_ARCHITECTURES: readonly Architecture[] = [
  {
    name: 'llama',
    names: {
      ...LLAMA,
      ffn_gate_inp: `${LAYER}block_sparse_moe.gate`,
      ffn_gate_exps: `${LAYER}block_sparse_moe.experts.*.w1`,
      ffn_down_exps: `${LAYER}block_sparse_moe.experts.*.w2`,
      ffn_up_exps: `${LAYER}block_sparse_moe.experts.*.w3`,
    },
    pairs: true,
    config: (keys, tensors) =>
      keys.number('expert_count', 0) === 0
        ? config('llama', biases)(keys, tensors)
        : config('mixtral', expertCounts)(keys, tensors),
  },
  { name: 'internlm2', names: LLAMA, pairs: true, config: config('llama', biases) },
  { name: 'minicpm', names: LLAMA, pairs: true, config: minicpmConfig },
  { name: 'qwen2', names: LLAMA, config: config('qwen2') },
  {
    name: 'qwen2moe',
    names: {
      ...LLAMA,
      ...EXPERTS,
      ...SHARED_EXPERT,
    },
    config: config('qwen2_moe', qwenSharedExperts(false)),
  },
  { name: 'qwen3', names: { ...LLAMA, ...HEAD_NORMS }, config: config('qwen3', attentionBias) },
  {
    name: 'qwen3moe',
    names: { ...LLAMA, ...HEAD_NORMS, ...EXPERTS },
    config: config('qwen3_moe', qwenExperts(true)),
  },
  { name: 'gemma', names: LLAMA, shiftedNorms: true, config: config('gemma', () => GELU_TANH) },
  {
    name: 'gemma2',
    ...gemma,
    config: config('gemma2', (keys) => ({
      ...GELU_TANH,
      ...gemmaScale(keys, 46),
      attn_logit_softcapping: keys.number('attn_logit_softcapping', 50),
      final_logit_softcapping: keys.number('final_logit_softcapping', 30),
      sliding_window: keys.number('attention.sliding_window', 4096),
      layer_types: layerTypes(keys, (layer) => layer % 2 === 0),
    })),
  },
  { name: 'gemma3', ...gemma, config: gemma3Config },
  {
    name: 'olmo',
    names: LLAMA,
    pairs: true,
    config: config('olmo', (keys) => ({
      layer_norm_eps: null,
      clip_qkv: keys.has('attention.clamp_kqv') ? keys.number('attention.clamp_kqv') : null,
    })),
  },
  { name: 'olmo2', names: { ...LLAMA, ...HEAD_NORMS, ...NORMS_AFTER }, config: olmo2Config },
  {
    name: 'olmoe',
    names: { ...LLAMA, ...HEAD_NORMS, ...EXPERTS },
    config: config('olmoe', (keys) => ({ ...expertCounts(keys), norm_topk_prob: false })),
  },
  { name: 'smollm3', names: LLAMA, pairs: true, config: config('smollm3') },
  { name: 'granite', names: LLAMA, pairs: true, config: graniteConfig },
  {
    name: 'granitemoe',
    names: {
      ...BODY,
      ffn_gate_inp: `${LAYER}block_sparse_moe.router.layer`,
      ffn_gate_exps: `${LAYER}block_sparse_moe.input_linear`,
      ffn_down_exps: `${LAYER}block_sparse_moe.output_linear`,
    },
    moved: (keys) => [
      { from: ['ffn_gate_exps', 'ffn_up_exps'], rows: after(keys.number('feed_forward_length')) },
    ],
    pairs: true,
    config: config('granitemoe', (keys) => ({ ...graniteMultipliers(keys), ...expertCounts(keys) })),
  },
  { name: 'arcee', names: LLAMA, pairs: true, config: config('arcee', () => ({ hidden_act: 'relu2' })) },
  { name: 'ernie4_5', names: LLAMA, config: config('ernie4_5') },
  {
    name: 'exaone4',
    names: { ...LLAMA, ...HEAD_NORMS, ...NORMS_AFTER },
    config: config('exaone4', exaone4Windows),
  },
  {
    name: 'seed_oss',
    names: { ...LLAMA, post_attention_norm: `${LAYER}post_attention_layernorm` },
    config: config('seed_oss', (keys, tensors) => ({
      ...attentionBias(keys, tensors),
      attention_out_bias: tensors.has('blk.0.attn_output.bias'),
    })),
  },
  {
    name: 'hunyuan-dense',
    names: {
      ...LLAMA,
      attn_q_norm: `${LAYER}self_attn.query_layernorm`,
      attn_k_norm: `${LAYER}self_attn.key_layernorm`,
    },
    config: config('hunyuan_v1_dense', attentionBias),
  },
  {
    name: 'apertus',
    names: {
      ...LLAMA,
      ...HEAD_NORMS,
      attn_norm: `${LAYER}attention_layernorm`,
      ffn_norm: `${LAYER}feedforward_layernorm`,
    },
    scalars: {
      [`${LAYER}mlp.act_fn.alpha_p`]: 'xielu.alpha_p',
      [`${LAYER}mlp.act_fn.alpha_n`]: 'xielu.alpha_n',
    },
    config: config('apertus'),
  },
];

import { type Architecture, layerTypes, llamaConfig } from './architecture.ts';
import {
  attentionBias,
  BODY,
  type Config,
  config,
  expertCounts,
  HEAD_NORMS,
  LAYER,
  LLAMA,
} from './llama-architectures.ts';
import { alternating } from './row-order.ts';

const gptOssConfig: Config = (keys, tensors) => ({
  ...llamaConfig('gpt_oss', keys, tensors),
  intermediate_size: keys.number('expert_feed_forward_length'),
  ...expertCounts(keys),
  attention_bias: true,
  sliding_window: keys.number('attention.sliding_window'),
  layer_types: layerTypes(keys, (layer) => layer % 2 === 0),
  rope_scaling: { ...(llamaConfig('', keys, tensors).rope_scaling ?? {}), truncate: false },
});

/** Architectures with Llama's names but other MLPs or norms. */
export const RELATED_ARCHITECTURES: readonly Architecture[] = [
  {
    name: 'gpt-oss',
    names: {
      ...BODY,
      attn_sinks: { weight: `${LAYER}self_attn.sinks` },
      post_attention_norm: `${LAYER}post_attention_layernorm`,
      ffn_gate_inp: `${LAYER}mlp.router`,
      ffn_gate_exps: {
        weight: `${LAYER}mlp.experts.gate_up_proj`,
        bias: `${LAYER}mlp.experts.gate_up_proj_bias`,
      },
      ffn_down_exps: {
        weight: `${LAYER}mlp.experts.down_proj`,
        bias: `${LAYER}mlp.experts.down_proj_bias`,
      },
    },
    transposed: ['ffn_gate_exps', 'ffn_down_exps'],
    moved: () => [{ from: ['ffn_gate_exps', 'ffn_up_exps'], rows: alternating }],
    config: gptOssConfig,
  },
  {
    name: 'command-r',
    names: { ...LLAMA, ...HEAD_NORMS },
    config: config('cohere', (keys, tensors) => ({
      logit_scale: keys.number('logit_scale', 1),
      use_qk_norm: tensors.has('blk.0.attn_q_norm.weight'),
    })),
  },
  {
    name: 'cohere2',
    names: LLAMA,
    config: config('cohere2', (keys) => ({
      logit_scale: keys.number('logit_scale'),
      sliding_window: keys.number('attention.sliding_window'),
      layer_types: layerTypes(keys, (layer) => (layer + 1) % 4 !== 0),
    })),
  },
  {
    name: 'phi2',
    names: {
      ...BODY,
      output_norm: 'model.final_layernorm',
      attn_output: `${LAYER}self_attn.dense`,
      ffn_up: `${LAYER}mlp.fc1`,
      ffn_down: `${LAYER}mlp.fc2`,
    },
    config: config('phi', (_, tensors) => ({
      // The converter writes four times the hidden size whatever the width is.
      intermediate_size: tensors.shape('blk.0.ffn_up.weight')[0],
      hidden_act: 'gelu_new',
    })),
  },
  {
    name: 'phi3',
    names: { ...LLAMA, attn_qkv: `${LAYER}self_attn.qkv_proj`, ffn_up: `${LAYER}mlp.gate_up_proj` },
    config: config('phi3', (keys) => ({
      sliding_window: keys.number('attention.sliding_window', 0) || null,
    })),
  },
  {
    name: 'starcoder2',
    names: { ...BODY, ffn_up: `${LAYER}mlp.c_fc`, ffn_down: `${LAYER}mlp.c_proj` },
    config: config('starcoder2', (keys, tensors) => ({
      norm_epsilon: keys.number('attention.layer_norm_epsilon'),
      layer_norm_eps: null,
      use_bias: tensors.has('blk.0.attn_q.bias'),
      hidden_act: 'gelu_pytorch_tanh',
    })),
  },
  {
    name: 'stablelm',
    names: {
      ...LLAMA,
      attn_q_norm: `${LAYER}self_attn.q_layernorm.norms.*`,
      attn_k_norm: `${LAYER}self_attn.k_layernorm.norms.*`,
    },
    config: config('stablelm', (keys, tensors) => ({
      use_parallel_residual:
        keys.flag('use_parallel_residual', true) && !tensors.has('blk.0.ffn_norm.weight'),
      use_qkv_bias: tensors.has('blk.0.attn_q.bias'),
      qk_layernorm: tensors.has('blk.0.attn_q_norm.weight'),
    })),
  },
  {
    name: 'nemotron',
    names: { ...BODY, ffn_up: `${LAYER}mlp.up_proj`, ffn_down: `${LAYER}mlp.down_proj` },
    shiftedNorms: true,
    config: config('nemotron', (keys) => ({
      norm_eps: keys.number('attention.layer_norm_epsilon'),
      layer_norm_eps: null,
      rms_norm_eps: null,
      hidden_act: 'relu2',
    })),
  },
  {
    name: 'chatglm',
    names: { ...LLAMA, ffn_up: `${LAYER}mlp.gate_up_proj` },
    config: config('glm', attentionBias),
  },
  {
    name: 'glm4',
    names: {
      ...LLAMA,
      ffn_up: `${LAYER}mlp.gate_up_proj`,
      post_attention_norm: `${LAYER}post_self_attn_layernorm`,
      post_ffw_norm: `${LAYER}post_mlp_layernorm`,
    },
    config: config('glm4', attentionBias),
  },
];

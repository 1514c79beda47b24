import { words } from '@continuo/shared/field-names.ts';
import type { ConfigFields } from './config-fields.ts';
import type { DecoderRow, Differences, RowContext } from './decoder-row.ts';
import { everyNthFull, everywhere, exaoneLayers, laterLayers, withoutPositions } from './windows.ts';

/**
 * Families close to Llama: RMS norms, rotary positions and, unless a row says otherwise, separate matrices.
 */

export const attentionBias = (fields: ConfigFields, field = 'attention_bias', absent = false) => {
  const qkv = fields.flag(field, absent);
  return { qkv, output: qkv };
};

export const mlpBias = (fields: ConfigFields) => ({ mlp: fields.flag('mlp_bias', false) });

/** OLMo 2 and EXAONE 4 normalize what attention and MLP return, not what they read. */
export const NORMS_AFTER = {
  attentionNorm: '',
  feedForwardNorm: '',
  attentionOutputNorm: 'post_attention_layernorm',
  feedForwardOutputNorm: 'post_feedforward_layernorm',
};

export function graniteFactors({ fields }: RowContext): Differences {
  return {
    residualScale: fields.number('residual_multiplier', 1),
    attention: { scale: fields.number('attention_multiplier', 1) },
    decoder: {
      embeddingScale: fields.number('embedding_multiplier', 1),
      logitScale: 1 / fields.number('logits_scaling', 1),
    },
  };
}

/** How queries grow with their position, as Ministral 3 and Mistral 4 write it beside the scaling. */
export function readQueryScaling(fields: ConfigFields) {
  const parameters = fields.inner('rope_parameters');
  if (parameters === null) throw fields.fault('rope_parameters', 'an object');
  parameters.ignore('max_position_embeddings');
  const queryScaling = {
    beta: parameters.number('llama_4_scaling_beta'),
    originalPositions: parameters.count('original_max_position_embeddings'),
    first: 0 as const,
  };
  fields.require('original_max_position_embeddings', queryScaling.originalPositions);
  return queryScaling;
}

/**
 * Fields of other models of HunYuan's, with images, experts or other attention, that the dense ones' files
 * also have.
 */
export const HUNYUAN_FAMILY = words(`
  eod_token_id pad_id im_start_id im_end_id im_newline_id text_start_id text_end_id image_token_id video_start_id video_end_id
  mask_init_id org_vocab_size dense_list class_num pool_type skip_cls_token cla_share_factor xdrope_section
  vit_path vit_type vit_input_resolution vit_token vit_patch vit_mapping_type vit_norm_type vit_used_rms_norm
  vit_remove_prenorm vit_add_patchemb_bias num_media_embeds anyres_vit_max_image_size anyres_vit_two_views
  anyres_pooling_size moe_intermediate_size moe_topk moe_layer_num_skipped moe_drop_tokens capacity_factor
  moe_random_routing_dropped_token use_mixed_mlp_moe norm_topk_prob routed_scaling_factor group_limited_greedy n_group
  topk_group kv_lora_rank q_lora_rank qk_rope_head_dim qk_nope_head_dim v_head_dim
`);

/** GLM: pairs of neighbours in the first half of each head, gate and up in one matrix. */
const glm = ({ fields }: RowContext): Differences => ({
  biases: { qkv: fields.flag('attention_bias', true) },
  mlp: 'fused',
  rotary: { interleaved: true, partial: 0.5 },
});

/** What transformers takes for Apertus if config.json has no scaling. */
const APERTUS_SCALING = {
  rope_type: 'llama3',
  rope_theta: 12_000_000,
  factor: 8,
  low_freq_factor: 1,
  high_freq_factor: 4,
  original_max_position_embeddings: 8192,
};

export const LLAMA_ROWS: readonly DecoderRow[] = [
  {
    modelTypes: ['llama', 'iquestcoder'],
    defaults: { rms_norm_eps: 1e-6 },
    sizeFields: { positions: ['max_position_embeddings', 'max_sequence_length'] },
    ignored: ['max_sequence_length', 'max_window_layers'],
    differences: ({ fields }) => ({ biases: { ...attentionBias(fields), ...mlpBias(fields) } }),
  },
  {
    modelTypes: ['mistral'],
    within: ['mistral3'],
    defaults: { rms_norm_eps: 1e-6, sliding_window: 4096 },
    differences: ({ fields }) => everywhere(fields),
  },
  {
    modelTypes: ['ministral3'],
    within: ['mistral3'],
    defaults: { rms_norm_eps: 1e-5, head_dim: 128 },
    differences: ({ fields }) => ({
      ...everywhere(fields),
      attention: { queryScaling: readQueryScaling(fields) },
    }),
  },
  {
    modelTypes: ['qwen2'],
    defaults: { rms_norm_eps: 1e-6 },
    differences: (row) => ({ biases: { qkv: true }, ...laterLayers(row) }),
  },
  {
    modelTypes: ['qwen3'],
    defaults: { rms_norm_eps: 1e-6, head_dim: 128 },
    differences: (row) => ({
      biases: attentionBias(row.fields),
      headNorm: { over: 'head' },
      ...laterLayers(row),
    }),
  },
  {
    modelTypes: ['olmo'],
    differences: ({ fields }) => ({
      biases: attentionBias(fields),
      norm: { kind: 'layer', epsilon: 1e-5, weighted: false },
      attention: { clip: fields.optionalNumber('clip_qkv') },
    }),
  },
  {
    modelTypes: ['olmo2'],
    defaults: { rms_norm_eps: 1e-5 },
    differences: ({ fields }) => ({
      biases: attentionBias(fields),
      names: NORMS_AFTER,
      headNorm: { over: 'width' },
    }),
  },
  {
    modelTypes: ['olmo3'],
    // transformers reads another one for the layers without a window only.
    requires: { rope_theta: [500_000] },
    defaults: { rms_norm_eps: 1e-5, sliding_window: 4096 },
    differences: (row) => ({
      biases: attentionBias(row.fields),
      names: NORMS_AFTER,
      headNorm: { over: 'width' },
      rotary: { theta: 500_000, layerType: 'full_attention' },
      slidingRotary: { theta: 500_000, layerType: 'sliding_attention', thetaField: null },
      ...everyNthFull(row, 4),
    }),
  },
  {
    modelTypes: ['smollm3'],
    defaults: { rms_norm_eps: 1e-6 },
    ignored: ['max_window_layers'],
    differences: (row) => ({
      biases: { ...attentionBias(row.fields), ...mlpBias(row.fields) },
      rotary: { theta: 2_000_000 },
      tied: true,
      ...withoutPositions(row),
    }),
  },
  {
    modelTypes: ['granite'],
    defaults: { rms_norm_eps: 1e-6 },
    differences: (row) => ({
      biases: { ...attentionBias(row.fields), ...mlpBias(row.fields) },
      ...graniteFactors(row),
    }),
  },
  {
    modelTypes: ['minicpm'],
    defaults: { rms_norm_eps: 1e-6 },
    sizeFields: { headSize: [] },
    requires: { rope_scaling: [] },
    differences: ({ fields, sizes }) => ({
      residualScale: fields.number('scale_depth') / Math.sqrt(sizes.layers),
      tied: true,
      decoder: {
        embeddingScale: fields.number('scale_emb'),
        logitScale: fields.number('dim_model_base') / sizes.hidden,
      },
    }),
  },
  {
    modelTypes: ['arcee'],
    defaults: { rms_norm_eps: 1e-5, hidden_act: 'relu2' },
    differences: ({ fields }) => ({
      biases: { ...attentionBias(fields), ...mlpBias(fields) },
      mlp: 'plain',
    }),
  },
  {
    modelTypes: ['seed_oss'],
    defaults: { rms_norm_eps: 1e-6, head_dim: 128 },
    ignored: ['residual_dropout'],
    differences: ({ fields }) => ({
      biases: {
        qkv: fields.flag('attention_bias', true),
        output: fields.flag('attention_out_bias', false),
        ...mlpBias(fields),
      },
    }),
  },
  {
    modelTypes: ['apertus'],
    defaults: { rms_norm_eps: 1e-5 },
    requires: { hidden_act: ['xielu'] },
    differences: ({ fields }) => ({
      biases: attentionBias(fields),
      names: { attentionNorm: 'attention_layernorm', feedForwardNorm: 'feedforward_layernorm' },
      headNorm: { over: 'head' },
      mlp: 'plain',
      rotary: { theta: 12_000_000, otherwise: APERTUS_SCALING },
      activation: (layer) => ({
        kind: 'xielu',
        alphaP: [{ tensor: `${layer}.mlp.act_fn.alpha_p` }],
        alphaN: [{ tensor: `${layer}.mlp.act_fn.alpha_n` }],
        beta: 0.5,
        epsilon: -1e-6,
      }),
    }),
  },
  {
    modelTypes: ['helium'],
    defaults: { rms_norm_eps: 1e-8, head_dim: 128 },
    differences: ({ fields }) => ({
      biases: { qkv: fields.flag('attention_bias', false), ...mlpBias(fields) },
      rotary: { interleaved: true, theta: 100_000 },
    }),
  },
  {
    modelTypes: ['ernie4_5'],
    defaults: { rms_norm_eps: 1e-5, head_dim: 128 },
    differences: ({ fields }) => {
      const bias = fields.flag('use_bias', false);
      return {
        biases: { qkv: bias, output: bias, mlp: bias },
        rotary: { interleaved: true, theta: 500_000 },
        tied: true,
      };
    },
  },
  {
    modelTypes: ['hunyuan_v1_dense'],
    defaults: { rms_norm_eps: 1e-5 },
    ignored: HUNYUAN_FAMILY,
    differences: ({ fields }) => ({
      biases: attentionBias(fields),
      names: { queryNorm: 'self_attn.query_layernorm', keyNorm: 'self_attn.key_layernorm' },
      headNorm: { over: 'head' },
      attention: { normPlace: 'after-rotary' },
      rotary: { growing: true },
    }),
  },
  {
    modelTypes: ['exaone4'],
    defaults: { rms_norm_eps: 1e-5, sliding_window: 4096 },
    differences: (row) => ({ names: NORMS_AFTER, headNorm: { over: 'head' }, ...exaoneLayers(row) }),
  },
  {
    modelTypes: ['glm'],
    defaults: { rms_norm_eps: 1.5625e-7, head_dim: 128 },
    differences: glm,
  },
  {
    modelTypes: ['glm4'],
    defaults: { rms_norm_eps: 1.5625e-7, head_dim: 128 },
    differences: (row) => ({
      ...glm(row),
      names: {
        attentionOutputNorm: 'post_self_attn_layernorm',
        feedForwardOutputNorm: 'post_mlp_layernorm',
      },
    }),
  },
  {
    modelTypes: ['phi3'],
    defaults: { rms_norm_eps: 1e-5 },
    ignored: ['original_max_position_embeddings'],
    differences: ({ fields }) => ({
      fused: 'blocks',
      mlp: 'fused',
      rotary: { partial: 1 },
      ...everywhere(fields),
    }),
  },
  {
    modelTypes: ['internlm2'],
    defaults: { rms_norm_eps: 1e-6 },
    sizeFields: { headSize: [] },
    differences: ({ fields }) => ({
      biases: attentionBias(fields, 'bias', true),
      names: {
        embedding: 'model.tok_embeddings',
        head: 'output',
        qkv: 'attention.wqkv',
        output: 'attention.wo',
        gate: 'feed_forward.w1',
        up: 'feed_forward.w3',
        down: 'feed_forward.w2',
        attentionNorm: 'attention_norm',
        feedForwardNorm: 'ffn_norm',
      },
      fused: 'by-kv-head',
    }),
  },
];

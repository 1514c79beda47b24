import type { DecoderRow, Differences, RowContext } from '../reading/decoder-row.ts';
import {
  attentionBias,
  graniteFactors,
  HUNYUAN_FAMILY,
  hunyuan,
  mlpBias,
  NORMS_AFTER,
  readQueryScaling,
} from '../reading/shared-differences.ts';
import { everyNthFull, everywhere, exaoneLayers, laterLayers, withoutPositions } from '../reading/windows.ts';

/**
 * Families close to Llama: RMS norms, rotary positions and, unless a row says otherwise, separate matrices.
 */

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
    differences: ({ fields }) => hunyuan(fields),
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

import type { DecoderRow, Differences, RowContext } from '../reading/decoder-row.ts';
import { everyNthFull } from '../reading/windows.ts';

/** Gemma: norms with 1 + w, and embeddings multiplied by the root of their width. */

const gemma = ({ sizes }: RowContext): Differences => ({
  norm: { kind: 'rms', epsilon: 'rms_norm_eps', weightOffset: 1 },
  activation: () => 'gelu-tanh',
  tied: true,
  decoder: { embeddingScale: Math.sqrt(sizes.hidden) },
});

/** Norms before and after attention and MLP. */
export const NORMS_AROUND = {
  attentionOutputNorm: 'post_attention_layernorm',
  feedForwardNorm: 'pre_feedforward_layernorm',
  feedForwardOutputNorm: 'post_feedforward_layernorm',
};

/** Norms around attention and MLP, and soft caps. */
function gemma2(row: RowContext, sequence: number): Differences {
  const { fields } = row;
  const common = gemma(row);
  return {
    ...common,
    ...everyNthFull(row, sequence),
    names: NORMS_AROUND,
    attention: {
      scale: 1 / Math.sqrt(fields.number('query_pre_attn_scalar', 256)),
      softCap: fields.optionalNumber('attn_logit_softcapping'),
    },
    decoder: { ...common.decoder, logitSoftCap: fields.optionalNumber('final_logit_softcapping') },
  };
}

const REQUIRES = {
  hidden_activation: ['gelu_pytorch_tanh'],
  attention_bias: [false],
  use_bidirectional_attention: [false],
};

const GEMMA2: DecoderRow = {
  modelTypes: ['gemma2'],
  defaults: {
    rms_norm_eps: 1e-6,
    head_dim: 256,
    sliding_window: 4096,
    attn_logit_softcapping: 50,
    final_logit_softcapping: 30,
  },
  ignored: ['cache_implementation', 'sliding_window_size'],
  requires: { ...REQUIRES, hidden_act: ['gelu_pytorch_tanh'] },
  differences: (row) => gemma2(row, 2),
};

export const GEMMA_ROWS: readonly DecoderRow[] = [
  {
    modelTypes: ['gemma'],
    defaults: { rms_norm_eps: 1e-6, head_dim: 256 },
    // Published files say gelu, with which the models were not trained.
    requires: { ...REQUIRES, hidden_act: ['gelu', 'gelu_pytorch_tanh'] },
    differences: gemma,
  },
  GEMMA2,
  {
    ...GEMMA2,
    modelTypes: ['vaultgemma'],
    differences: (row) => ({ ...gemma2(row, 2), names: { feedForwardNorm: 'pre_feedforward_layernorm' } }),
  },
  {
    modelTypes: ['gemma3_text'],
    within: ['gemma3'],
    defaults: {
      vocab_size: 262_208,
      hidden_size: 2304,
      intermediate_size: 9216,
      num_hidden_layers: 26,
      num_attention_heads: 8,
      num_key_value_heads: 4,
      head_dim: 256,
      max_position_embeddings: 131_072,
      rms_norm_eps: 1e-6,
      sliding_window: 4096,
    },
    ignored: ['cache_implementation', '_sliding_window_pattern'],
    requires: { ...REQUIRES, hidden_act: ['gelu_pytorch_tanh'] },
    differences: (row) => ({
      ...gemma2(row, row.fields.count('sliding_window_pattern', 6)),
      headNorm: { over: 'head' },
      rotary: { theta: 1_000_000, layerType: 'full_attention' },
      slidingRotary: { thetaField: 'rope_local_base_freq', layerType: 'sliding_attention' },
    }),
  },
];

import { words } from '@continuo/shared/field-names.ts';
import type { DecoderRow, Differences, RowContext } from '../reading/decoder-row.ts';
import { attentionBias, mlpBias } from '../reading/shared-differences.ts';
import { byLayer, everywhere } from '../reading/windows.ts';

/** Families with rotary positions and LayerNorm. */

/** Attention and MLP read the same norm and are added together. */
const PARALLEL: Pick<Differences, 'residual'> = { residual: 'parallel-shared-norm' };

const cohere = ({ fields }: RowContext): Differences => ({
  ...PARALLEL,
  biases: attentionBias(fields),
  names: { feedForwardNorm: '' },
  norm: { kind: 'layer', epsilon: 'layer_norm_eps' },
  tied: true,
  decoder: { logitScale: fields.number('logit_scale', 0.0625) },
});

export const LAYER_NORM_ROWS: readonly DecoderRow[] = [
  {
    modelTypes: ['phi'],
    defaults: { layer_norm_eps: 1e-5, hidden_act: 'gelu_new' },
    differences: ({ fields }) => ({
      ...PARALLEL,
      biases: { qkv: true, output: true, mlp: true, head: true },
      names: {
        finalNorm: 'model.final_layernorm',
        output: 'self_attn.dense',
        up: 'mlp.fc1',
        down: 'mlp.fc2',
        queryNorm: 'self_attn.q_layernorm',
        keyNorm: 'self_attn.k_layernorm',
        feedForwardNorm: '',
      },
      norm: { kind: 'layer', epsilon: 'layer_norm_eps', biased: true },
      headNorm: fields.flag('qk_layernorm', false) ? { over: 'head', biased: true } : null,
      mlp: 'plain',
      rotary: { partial: 0.5 },
    }),
  },
  {
    modelTypes: ['stablelm'],
    defaults: { layer_norm_eps: 1e-5 },
    sizeFields: { headSize: [] },
    differences: ({ fields }) => {
      const isParallel = fields.flag('use_parallel_residual', false);
      return {
        ...(isParallel ? PARALLEL : {}),
        biases: { qkv: fields.flag('use_qkv_bias', false) },
        names: {
          queryNorm: 'self_attn.q_layernorm',
          keyNorm: 'self_attn.k_layernorm',
          ...(isParallel ? { feedForwardNorm: '' } : {}),
        },
        norm: { kind: 'layer', epsilon: 'layer_norm_eps', biased: true },
        headNorm: fields.flag('qk_layernorm', false) ? { over: 'each-head', apart: true } : null,
        rotary: { partial: 0.25 },
      };
    },
  },
  {
    modelTypes: ['starcoder2'],
    defaults: { norm_epsilon: 1e-5, hidden_act: 'gelu_pytorch_tanh' },
    // Published files name the activation of their first code, too; `hidden_act` is the one that is used.
    ignored: [
      'activation_function',
      ...words(
        'residual_dropout embedding_dropout attention_softmax_in_fp32 scale_attention_softmax_in_fp32',
      ),
    ],
    requires: { mlp_type: ['default'] },
    differences: ({ fields }) => {
      const bias = fields.flag('use_bias', true);
      return {
        biases: { qkv: bias, output: bias, mlp: bias },
        names: { up: 'mlp.c_fc', down: 'mlp.c_proj' },
        norm: { kind: 'layer', epsilon: 'norm_epsilon', biased: true },
        mlp: 'plain',
        tied: true,
        ...everywhere(fields),
      };
    },
  },
  {
    modelTypes: ['nemotron'],
    defaults: { norm_eps: 1e-5, hidden_act: 'relu2' },
    differences: ({ fields }) => ({
      biases: { ...attentionBias(fields), ...mlpBias(fields) },
      norm: { kind: 'layer', epsilon: 'norm_eps', weightOffset: 1, biased: true },
      mlp: 'plain',
      rotary: { partial: 0.5 },
    }),
  },
  {
    modelTypes: ['cohere'],
    defaults: { layer_norm_eps: 1e-5 },
    differences: (row) => ({
      ...cohere(row),
      headNorm: row.fields.flag('use_qk_norm', false) ? { over: 'each-head' } : null,
      rotary: { interleaved: true, theta: 500_000 },
    }),
  },
  {
    modelTypes: ['cohere2'],
    defaults: { layer_norm_eps: 1e-5, sliding_window: 4096 },
    sizeFields: { headSize: [] },
    ignored: ['layer_switch', 'cache_implementation', '_sliding_window_pattern'],
    requires: {
      order_of_interleaved_layers: ['local_attn_first'],
      position_embedding_type: ['rope_gptj'],
      use_parallel_embedding: [false],
    },
    differences: (row) => {
      const pattern = row.fields.count('sliding_window_pattern', 4);
      const { window, isSliding } = byLayer(row, (layer) => (layer + 1) % pattern !== 0);
      return {
        ...cohere(row),
        rotary: { interleaved: true },
        layer: (index) => ({
          window: isSliding[index] ? window : null,
          rotated: window !== null && isSliding[index] === true,
        }),
      };
    },
  },
];

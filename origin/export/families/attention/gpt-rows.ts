import { words } from '@continuo/shared/field-names.ts';
import { whole } from '../../design/weight-design.ts';
import type { DecoderRow, Differences, NormStyle, RowContext } from '../reading/decoder-row.ts';
import { projection } from '../reading/design-parts.ts';
import { attentionBias } from '../reading/shared-differences.ts';

/** GPT-2 and its descendants: LayerNorm with bias, MLP without gate. */

export const ALL_BIASES = { qkv: true, output: true, mlp: true };

export const layerNormWithBias = (epsilon: string | number): NormStyle => ({
  kind: 'layer',
  epsilon,
  biased: true,
});

const GPT_SIZES = {
  hidden: ['n_embd', 'hidden_size'],
  layers: ['n_layer', 'num_hidden_layers'],
  heads: ['n_head', 'num_attention_heads'],
  kvHeads: [],
  headSize: [],
  width: ['n_inner', 'intermediate_size'],
  positions: ['n_positions', 'max_position_embeddings'],
};

const GPT_NEUTRAL = words(`
  n_ctx scale_attention_softmax_in_fp32 attention_softmax_in_fp32 reorder_and_upcast_attn summary_activation
  summary_first_dropout summary_proj_to_labels summary_type summary_use_proj embed_dropout resid_dropout
  n_special predict_special_tokens apply_query_key_layer_scaling
`);

const GPT_NAMES = {
  embedding: 'transformer.wte',
  layers: 'transformer.h',
  finalNorm: 'transformer.ln_f',
  qkv: 'attn.c_attn',
  output: 'attn.c_proj',
  up: 'mlp.c_fc',
  down: 'mlp.c_proj',
  attentionNorm: 'ln_1',
  feedForwardNorm: 'ln_2',
};

export const TRANSFORMER_PREFIXES = ['transformer.', '', 'model.transformer.'];

const gpt2 = ({ fields, sizes }: RowContext): Differences => {
  const scale = fields.flag('scale_attn_weights', true) ? 1 / Math.sqrt(sizes.headSize) : 1;
  return {
    biases: ALL_BIASES,
    names: GPT_NAMES,
    norm: layerNormWithBias('layer_norm_epsilon'),
    fused: 'blocks',
    mlp: 'plain',
    activation: 'activation_function',
    attention: { scale },
    rotary: null,
    tied: true,
    decoder: { learnedPositions: { weight: whole('transformer.wpe.weight'), offset: 0 } },
  };
};

export const GPT_ROWS: readonly DecoderRow[] = [
  {
    modelTypes: ['gpt2'],
    prefixes: TRANSFORMER_PREFIXES,
    sizeFields: GPT_SIZES,
    ignored: GPT_NEUTRAL,
    defaults: { layer_norm_epsilon: 1e-5, activation_function: 'gelu_new' },
    differences: (row) => {
      const common = gpt2(row);
      const byDepth = row.fields.flag('scale_attn_by_inverse_layer_idx', false);
      const scale = common.attention?.scale ?? 1;
      return { ...common, transposed: true, layer: (i) => ({ scale: byDepth ? scale / (i + 1) : scale }) };
    },
  },
  {
    modelTypes: ['gpt_bigcode'],
    prefixes: TRANSFORMER_PREFIXES,
    sizeFields: GPT_SIZES,
    ignored: [
      ...GPT_NEUTRAL,
      ...words(`
        attention_head_type inference_runner max_batch_size max_sequence_length pad_key_length
        pre_allocate_kv_cache validate_runner_input
      `),
    ],
    defaults: { layer_norm_epsilon: 1e-5, activation_function: 'gelu_pytorch_tanh' },
    differences: (row) => {
      const common = gpt2(row);
      if (row.fields.flag('multi_query', true)) return { ...common, sizes: { kvHeads: 1 } };
      return { ...common, fused: 'by-kv-head' };
    },
  },
  {
    modelTypes: ['gpt_neo'],
    prefixes: TRANSFORMER_PREFIXES,
    sizeFields: {
      layers: ['num_layers', 'num_hidden_layers'],
      heads: ['num_heads', 'num_attention_heads'],
      kvHeads: [],
      headSize: [],
    },
    ignored: GPT_NEUTRAL,
    defaults: { layer_norm_epsilon: 1e-5, activation_function: 'gelu_new' },
    differences: ({ fields, sizes }) => {
      const kinds = attentionKinds(fields.value('attention_types'));
      if (kinds?.length !== sizes.layers)
        throw fields.fault('attention_types', `[[["global", "local"], n]] for ${sizes.layers} layers`);
      fields.require('attention_layers', kinds);
      const window = fields.count('window_size', 256);
      return {
        biases: { output: true, mlp: true },
        names: {
          ...GPT_NAMES,
          query: 'attn.attention.q_proj',
          key: 'attn.attention.k_proj',
          value: 'attn.attention.v_proj',
          output: 'attn.attention.out_proj',
        },
        norm: layerNormWithBias('layer_norm_epsilon'),
        mlp: 'plain',
        activation: 'activation_function',
        attention: { scale: 1 },
        rotary: null,
        tied: true,
        layer: (index) => ({ window: kinds[index] === 'local' ? window : null }),
        decoder: { learnedPositions: { weight: whole('transformer.wpe.weight'), offset: 0 } },
      };
    },
  },
  {
    modelTypes: ['gptj'],
    prefixes: TRANSFORMER_PREFIXES,
    sizeFields: GPT_SIZES,
    ignored: GPT_NEUTRAL,
    defaults: { layer_norm_epsilon: 1e-5, activation_function: 'gelu_new', rotary_dim: 64 },
    differences: ({ fields, sizes }) => ({
      biases: { mlp: true, head: true },
      names: {
        ...GPT_NAMES,
        query: 'attn.q_proj',
        key: 'attn.k_proj',
        value: 'attn.v_proj',
        output: 'attn.out_proj',
        up: 'mlp.fc_in',
        down: 'mlp.fc_out',
        feedForwardNorm: '',
      },
      norm: layerNormWithBias('layer_norm_epsilon'),
      mlp: 'plain',
      activation: 'activation_function',
      residual: 'parallel-shared-norm',
      rotary: {
        interleaved: true,
        partial: fields.count('rotary_dim') / sizes.headSize,
        thetaField: null,
        partialField: null,
        reads: 'nothing',
      },
    }),
  },
  {
    modelTypes: ['gpt_neox'],
    prefixes: ['gpt_neox.', '', 'model.'],
    sizeFields: { kvHeads: [], headSize: [] },
    defaults: { layer_norm_eps: 1e-5, hidden_act: 'gelu' },
    differences: ({ fields }) => ({
      biases: { ...attentionBias(fields, 'attention_bias', true), mlp: true },
      names: {
        embedding: 'gpt_neox.embed_in',
        layers: 'gpt_neox.layers',
        finalNorm: 'gpt_neox.final_layer_norm',
        head: 'embed_out',
        qkv: 'attention.query_key_value',
        output: 'attention.dense',
        up: 'mlp.dense_h_to_4h',
        down: 'mlp.dense_4h_to_h',
      },
      norm: layerNormWithBias('layer_norm_eps'),
      fused: 'by-kv-head',
      mlp: 'plain',
      residual: fields.flag('use_parallel_residual', true) ? 'parallel' : 'sequential',
      rotary: { thetaField: 'rotary_emb_base', partialField: 'rotary_pct', partial: 0.25 },
    }),
  },
  {
    modelTypes: ['opt'],
    prefixes: ['model.decoder.', 'decoder.', ''],
    sizeFields: { width: ['ffn_dim'], kvHeads: [], headSize: [] },
    ignored: ['activation_dropout', 'init_std', 'output_projection'],
    defaults: { activation_function: 'relu' },
    differences: opt,
  },
];

/** Expands [[["global", "local"], 12]]; null if it is something else. */
function attentionKinds(types: unknown): string[] | null {
  if (!Array.isArray(types)) return null;
  const expanded = types.map((entry): string[] | null => {
    const [kinds, times] = Array.isArray(entry) ? entry : [];
    const isKnown = Array.isArray(kinds) && kinds.every((kind) => kind === 'global' || kind === 'local');
    return isKnown && typeof times === 'number' ? Array.from({ length: times }, () => kinds).flat() : null;
  });
  return expanded.some((kinds) => kinds === null) ? null : expanded.flatMap((kinds) => kinds ?? []);
}

/** OPT: norms before attention and MLP, or after each addition (OPT-350m, with its narrow embedding). */
function opt({ fields, sizes }: RowContext): Differences {
  const bias = fields.flag('enable_bias', true);
  const before = fields.flag('do_layer_norm_before', true);
  const removed = fields.flag('_remove_final_layer_norm', false);
  const [attention, feedForward] = ['self_attn_layer_norm', 'final_layer_norm'];
  const norms = before
    ? { attentionNorm: attention, feedForwardNorm: feedForward }
    : {
        attentionNorm: '',
        feedForwardNorm: '',
        afterAttentionNorm: attention,
        afterFeedForwardNorm: feedForward,
      };
  const projected = fields.count('word_embed_proj_dim', sizes.hidden) !== sizes.hidden;
  const embeddingProjection = {
    into: projection('model.decoder.project_in', false),
    outOf: projection('model.decoder.project_out', false),
  };
  return {
    biases: { qkv: bias, output: bias, mlp: bias },
    names: {
      embedding: 'model.decoder.embed_tokens',
      layers: 'model.decoder.layers',
      finalNorm: before && !removed ? 'model.decoder.final_layer_norm' : '',
      output: 'self_attn.out_proj',
      up: 'fc1',
      down: 'fc2',
      ...norms,
    },
    norm: layerNormWithBias(1e-5),
    mlp: 'plain',
    activation: 'activation_function',
    rotary: null,
    tied: true,
    decoder: {
      learnedPositions: { weight: whole('model.decoder.embed_positions.weight'), offset: 2 },
      embeddingProjection: projected ? embeddingProjection : null,
    },
  };
}

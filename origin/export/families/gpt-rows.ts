import { bloomSlopes, mptSlopes } from './alibi.ts';
import { layerNorm, projection } from './common-fields.ts';
import { whole } from './decoder-design.ts';
import type { DecoderRow, Differences, NormStyle, RowContext } from './decoder-row.ts';
import { attentionBias } from './llama-rows.ts';

/** GPT-2 and its descendants: LayerNorm with bias, MLP without gate. */

const ALL_BIASES = { qkv: true, output: true, mlp: true };

const normOf = (epsilon: string | number): NormStyle => ({ kind: 'layer', epsilon, biased: true });

const GPT_SIZES = {
  hidden: ['n_embd', 'hidden_size'],
  layers: ['n_layer', 'num_hidden_layers'],
  heads: ['n_head', 'num_attention_heads'],
  width: ['n_inner', 'intermediate_size'],
  positions: ['n_positions', 'max_position_embeddings'],
};

const GPT_NEUTRAL = [
  ...['n_ctx', 'scale_attention_softmax_in_fp32', 'attention_softmax_in_fp32', 'reorder_and_upcast_attn'],
  ...['summary_activation', 'summary_first_dropout', 'summary_proj_to_labels', 'summary_type'],
  ...['summary_use_proj', 'tokenizer_class', 'embed_dropout', 'resid_dropout'],
];

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

const PREFIXES = ['transformer.', '', 'model.transformer.'];

const gpt2 = ({ fields, sizes }: RowContext): Differences => {
  const scale = fields.flag('scale_attn_weights', true) ? 1 / Math.sqrt(sizes.headSize) : 1;
  return {
    biases: ALL_BIASES,
    names: GPT_NAMES,
    norm: normOf('layer_norm_epsilon'),
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
    prefixes: PREFIXES,
    sizeFields: GPT_SIZES,
    ignored: GPT_NEUTRAL,
    defaults: { layer_norm_epsilon: 1e-5, activation_function: 'gelu_new' },
    requires: { add_cross_attention: [false] },
    differences: (row) => {
      const common = gpt2(row);
      const byDepth = row.fields.flag('scale_attn_by_inverse_layer_idx', false);
      const scale = common.attention?.scale ?? 1;
      return { ...common, transposed: true, layer: (i) => ({ scale: byDepth ? scale / (i + 1) : scale }) };
    },
  },
  {
    modelTypes: ['gpt_bigcode'],
    prefixes: PREFIXES,
    sizeFields: GPT_SIZES,
    ignored: [
      ...GPT_NEUTRAL,
      ...['attention_head_type', 'inference_runner', 'max_batch_size', 'max_sequence_length'],
      ...['pad_key_length', 'pre_allocate_kv_cache', 'validate_runner_input'],
    ],
    defaults: { layer_norm_epsilon: 1e-5, activation_function: 'gelu_pytorch_tanh' },
    requires: { add_cross_attention: [false] },
    differences: (row) => {
      const common = gpt2(row);
      if (row.fields.flag('multi_query', true)) return { ...common, sizes: { kvHeads: 1 } };
      return { ...common, fused: 'by-kv-head' };
    },
  },
  {
    modelTypes: ['gpt_neo'],
    prefixes: PREFIXES,
    sizeFields: { layers: ['num_layers'], heads: ['num_heads'] },
    ignored: [...GPT_NEUTRAL, 'attention_layers'],
    defaults: { layer_norm_epsilon: 1e-5, activation_function: 'gelu_new' },
    differences: ({ fields, sizes }) => {
      const kinds = attentionKinds(fields.value('attention_types'));
      if (kinds?.length !== sizes.layers)
        throw fields.fault('attention_types', `[[["global", "local"], n]] for ${sizes.layers} layers`);
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
        norm: normOf('layer_norm_epsilon'),
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
    prefixes: PREFIXES,
    sizeFields: GPT_SIZES,
    ignored: GPT_NEUTRAL,
    defaults: { layer_norm_epsilon: 1e-5, activation_function: 'gelu_new', rotary_dim: 64 },
    requires: { rotary: [true], scale_attn_weights: [true] },
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
      norm: normOf('layer_norm_epsilon'),
      mlp: 'plain',
      activation: 'activation_function',
      residual: 'parallel-shared-norm',
      rotary: { interleaved: true, partial: fields.count('rotary_dim') / sizes.headSize },
    }),
  },
  {
    modelTypes: ['gpt_neox'],
    prefixes: ['gpt_neox.', '', 'model.'],
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
      norm: normOf('layer_norm_eps'),
      fused: 'by-kv-head',
      mlp: 'plain',
      residual: fields.flag('use_parallel_residual', true) ? 'parallel' : 'sequential',
      rotary: { theta: fields.number('rotary_emb_base', 10_000), partial: fields.number('rotary_pct', 0.25) },
    }),
  },
  {
    modelTypes: ['opt'],
    prefixes: ['model.decoder.', 'decoder.', ''],
    sizeFields: { width: ['ffn_dim'] },
    ignored: ['activation_dropout', 'init_std', 'output_projection', 'prefix'],
    defaults: { activation_function: 'relu' },
    requires: { layer_norm_elementwise_affine: [true] },
    differences: ({ fields, sizes }) => opt(fields.flag('enable_bias', true), { fields, sizes }),
  },
  {
    modelTypes: ['bloom'],
    prefixes: PREFIXES,
    unlimited: true,
    sizeFields: {
      hidden: ['hidden_size', 'n_embed'],
      layers: ['n_layer', 'num_hidden_layers'],
      heads: ['n_head', 'num_attention_heads'],
      width: ['n_inner'],
    },
    ignored: [
      ...['attention_softmax_in_fp32', 'bias_dropout_fusion', 'masked_softmax_fusion', 'offset_alibi'],
      ...['skip_bias_add', 'skip_bias_add_qkv', 'slow_but_exact', 'unk_token_id', 'seq_length'],
    ],
    defaults: { layer_norm_epsilon: 1e-5 },
    requires: { apply_residual_connection_post_layernorm: [false] },
    differences: ({ fields, sizes }) => ({
      biases: ALL_BIASES,
      names: {
        ...FALCON_NAMES,
        embedding: 'transformer.word_embeddings',
        attentionNorm: 'input_layernorm',
        feedForwardNorm: 'post_attention_layernorm',
      },
      norm: normOf('layer_norm_epsilon'),
      fused: 'by-kv-head',
      mlp: 'plain',
      activation: () => 'gelu-tanh',
      attention: { slopes: bloomSlopes(sizes.heads) },
      rotary: null,
      tied: true,
      decoder: {
        embeddingNorm: layerNorm(
          'transformer.word_embeddings_layernorm',
          fields.number('layer_norm_epsilon'),
        ),
      },
    }),
  },
  {
    modelTypes: ['falcon'],
    prefixes: PREFIXES,
    sizeFields: {
      layers: ['num_hidden_layers', 'n_layer'],
      heads: ['num_attention_heads', 'n_head'],
      width: ['ffn_hidden_size'],
    },
    defaults: { layer_norm_epsilon: 1e-5, activation: 'gelu', max_position_embeddings: 2048 },
    differences: falcon,
  },
  {
    modelTypes: ['mpt'],
    prefixes: PREFIXES,
    sizeFields: {
      hidden: ['d_model'],
      layers: ['n_layers'],
      heads: ['n_heads'],
      positions: ['max_seq_len'],
    },
    ignored: [
      ...['emb_pdrop', 'embedding_fraction', 'init_config', 'init_device', 'learned_pos_emb', 'verbose'],
      'tokenizer_name',
    ],
    defaults: { layer_norm_epsilon: 1e-5 },
    requires: {
      expansion_ratio: [4],
      logit_scale: [],
      no_bias: [true],
      norm_type: ['low_precision_layernorm'],
    },
    differences: mpt,
  },
];

const FALCON_NAMES = {
  embedding: 'transformer.word_embeddings',
  layers: 'transformer.h',
  finalNorm: 'transformer.ln_f',
  qkv: 'self_attention.query_key_value',
  output: 'self_attention.dense',
  up: 'mlp.dense_h_to_4h',
  down: 'mlp.dense_4h_to_h',
};

/** Expands [[["global", "local"], 12]]; null if it is something else. */
function attentionKinds(types: unknown): string[] | null {
  if (!Array.isArray(types)) return null;
  const expanded = types.map((entry): string[] | null => {
    const [kinds, times] = Array.isArray(entry) ? entry : [];
    const known = Array.isArray(kinds) && kinds.every((kind) => kind === 'global' || kind === 'local');
    return known && typeof times === 'number' ? Array.from({ length: times }, () => kinds).flat() : null;
  });
  return expanded.some((one) => one === null) ? null : expanded.flatMap((one) => one ?? []);
}

/** OPT: norms before attention and MLP, or after each addition (OPT-350m, whose embedding is narrower than the model). */
function opt(bias: boolean, { fields, sizes }: Pick<RowContext, 'fields' | 'sizes'>): Differences {
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
    norm: normOf(1e-5),
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

/** Falcon 7B, 40B (new_decoder_architecture) and RW (ALiBi, not parallel). */
function falcon({ fields, sizes }: RowContext): Differences {
  const isNew = fields.flag('new_decoder_architecture', false);
  const isParallel = fields.flag('parallel_attn', true) || isNew;
  const multiQuery = fields.flag('multi_query', true) && !isNew;
  const given = fields.count('num_kv_heads', sizes.heads);
  const norms = fields.count('num_ln_in_parallel_attn', isNew ? 2 : 1);
  const hasTwo = isNew && norms === 2;
  const bias = fields.flag('bias', false);
  const alibi = fields.flag('alibi', false);
  const feedForwardNorm = isParallel ? '' : 'post_attention_layernorm';
  return {
    sizes: { kvHeads: isNew ? given : multiQuery ? 1 : sizes.heads },
    biases: { qkv: bias, output: bias, mlp: bias },
    names: {
      ...FALCON_NAMES,
      attentionNorm: hasTwo ? 'ln_attn' : 'input_layernorm',
      feedForwardNorm: hasTwo ? 'ln_mlp' : feedForwardNorm,
    },
    norm: normOf('layer_norm_epsilon'),
    fused: 'by-kv-head',
    mlp: 'plain',
    activation: 'activation',
    residual: isParallel ? (hasTwo ? 'parallel' : 'parallel-shared-norm') : 'sequential',
    // The scores are divided by the root after the slopes are added.
    attention: {
      slopes: alibi ? bloomSlopes(sizes.heads).map((slope) => slope / Math.sqrt(sizes.headSize)) : null,
    },
    rotary: alibi ? null : {},
    tied: true,
  };
}

function mpt({ fields, sizes }: RowContext): Differences {
  const attention = fields.inner('attn_config');
  attention?.require('alibi', true);
  attention?.require('attn_type', 'multihead_attention');
  attention?.require('prefix_lm', false);
  attention?.require('qk_ln', false);
  attention?.ignore('attn_impl', 'attn_pdrop', 'attn_uses_sequence_id', 'model_type', 'transformers_version');
  const slopes = mptSlopes(sizes.heads, attention?.number('alibi_bias_max', 8) ?? 8);
  return {
    names: {
      embedding: 'transformer.wte',
      layers: 'transformer.blocks',
      finalNorm: 'transformer.norm_f',
      qkv: 'attn.Wqkv',
      output: 'attn.out_proj',
      up: 'ffn.up_proj',
      down: 'ffn.down_proj',
      attentionNorm: 'norm_1',
      feedForwardNorm: 'norm_2',
    },
    norm: { kind: 'layer', epsilon: 'layer_norm_epsilon' },
    fused: 'blocks',
    mlp: 'plain',
    activation: () => 'gelu',
    attention: {
      clip: attention?.optionalNumber('clip_qkv') ?? null,
      scale: attention?.optionalNumber('softmax_scale') ?? 1 / Math.sqrt(sizes.headSize),
      slopes,
    },
    rotary: null,
    tied: true,
  };
}

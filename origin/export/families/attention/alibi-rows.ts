import { words } from '@continuo/shared/field-names.ts';
import type { DecoderRow, Differences, RowContext } from '../reading/decoder-row.ts';
import { layerNorm } from '../reading/design-parts.ts';
import { NEUTRAL_FIELDS } from '../reading/known-fields.ts';
import { ALL_BIASES, layerNormWithBias, TRANSFORMER_PREFIXES } from './gpt-rows.ts';

/** Families that can have ALiBi in place of rotary positions. */

const FALCON_NAMES = {
  embedding: 'transformer.word_embeddings',
  layers: 'transformer.h',
  finalNorm: 'transformer.ln_f',
  qkv: 'self_attention.query_key_value',
  output: 'self_attention.dense',
  up: 'mlp.dense_h_to_4h',
  down: 'mlp.dense_4h_to_h',
};

export const ALIBI_ROWS: readonly DecoderRow[] = [
  {
    modelTypes: ['bloom'],
    prefixes: TRANSFORMER_PREFIXES,
    unlimited: true,
    sizeFields: {
      hidden: ['hidden_size', 'n_embed'],
      layers: ['n_layer', 'num_hidden_layers'],
      heads: ['n_head', 'num_attention_heads'],
      kvHeads: [],
      headSize: [],
      width: [],
    },
    ignored: words(`
      attention_softmax_in_fp32 bias_dropout_fusion masked_softmax_fusion offset_alibi skip_bias_add
      skip_bias_add_qkv slow_but_exact seq_length
    `),
    defaults: { layer_norm_epsilon: 1e-5 },
    differences: ({ fields, sizes }) => ({
      biases: ALL_BIASES,
      names: {
        ...FALCON_NAMES,
        embedding: 'transformer.word_embeddings',
        attentionNorm: 'input_layernorm',
        feedForwardNorm: 'post_attention_layernorm',
      },
      norm: layerNormWithBias('layer_norm_epsilon'),
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
    prefixes: TRANSFORMER_PREFIXES,
    sizeFields: {
      hidden: ['hidden_size', 'n_embed'],
      kvHeads: ['num_kv_heads'],
      headSize: [],
      width: ['ffn_hidden_size'],
    },
    defaults: { layer_norm_epsilon: 1e-5, activation: 'gelu', max_position_embeddings: 2048 },
    requires: { ff_factor: [4] },
    differences: falcon,
  },
  {
    modelTypes: ['mpt'],
    prefixes: TRANSFORMER_PREFIXES,
    sizeFields: {
      hidden: ['d_model', 'hidden_size'],
      layers: ['n_layers', 'num_hidden_layers'],
      heads: ['n_heads', 'num_attention_heads'],
      kvHeads: [],
      headSize: [],
      width: [],
      positions: ['max_seq_len'],
    },
    ignored: words('emb_pdrop init_config init_device learned_pos_emb verbose tokenizer_name'),
    defaults: { layer_norm_epsilon: 1e-5 },
    requires: {
      embedding_fraction: [1],
      expansion_ratio: [4],
      logit_scale: [],
      no_bias: [true],
    },
    differences: mpt,
  },
];

/** Falcon 7B, 40B (new_decoder_architecture) and RW (ALiBi, not parallel). */
function falcon({ fields, sizes }: RowContext): Differences {
  const isNew = fields.flag('new_decoder_architecture', false);
  const isParallel = fields.flag('parallel_attn', true) || isNew;
  const multiQuery = fields.flag('multi_query', true) && !isNew;
  const norms = fields.count('num_ln_in_parallel_attn', isNew ? 2 : 1);
  const hasTwo = isNew && norms === 2;
  const bias = fields.flag('bias', false);
  const alibi = fields.flag('alibi', false);
  if (alibi) fields.ignore('rope_parameters', 'rope_scaling', 'rope_theta');
  const feedForwardNorm = isParallel ? '' : 'post_attention_layernorm';
  return {
    sizes: multiQuery ? { kvHeads: 1 } : {},
    biases: { qkv: bias, output: bias, mlp: bias },
    names: {
      ...FALCON_NAMES,
      attentionNorm: hasTwo ? 'ln_attn' : 'input_layernorm',
      feedForwardNorm: hasTwo ? 'ln_mlp' : feedForwardNorm,
    },
    norm: layerNormWithBias('layer_norm_epsilon'),
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
  attention?.ignore(...NEUTRAL_FIELDS, 'attn_impl', 'attn_uses_sequence_id', 'is_encoder_decoder');
  // transformers does not read it.
  attention?.require('alibi_bias_max', ALIBI_BIAS_MAX);
  const slopes = mptSlopes(sizes.heads);
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

const ALIBI_BIAS_MAX = 8;

/** Slopes of ALiBi for each head, arXiv 2108.12409: powers of 2^(−8 / heads), heads a power of two. */
const powers = (heads: number): number[] =>
  Array.from({ length: heads }, (_, head) => 2 ** ((-ALIBI_BIAS_MAX / heads) * (head + 1)));

/** Other numbers of heads take the missing ones from twice the next lower power of two: BLOOM and Falcon. */
function bloomSlopes(heads: number): number[] {
  const lower = 2 ** Math.floor(Math.log2(heads));
  const between = powers(2 * lower).filter((_, index) => index % 2 === 0);
  return [...powers(lower), ...between.slice(0, heads - lower)];
}

/** Other numbers of heads take every second one of the next higher power of two first: MPT. */
function mptSlopes(heads: number): number[] {
  const higher = 2 ** Math.ceil(Math.log2(heads));
  const all = powers(higher);
  if (higher === heads) return all;
  const every = (first: number) => all.filter((_, index) => index % 2 === first);
  return [...every(1), ...every(0)].slice(0, heads);
}

import { words } from '@continuo/shared/field-names.ts';
import type { ConfigFields } from '../reading/config-fields.ts';
import type { DecoderRow, Differences, ExpertsStyle, RowContext } from '../reading/decoder-row.ts';
import { kernelLength, projection, readAttendingLayers } from '../reading/design-parts.ts';

/** Families with convolutions in place of attention in most layers. */

/** The width of the MLP: two thirds of the field, rounded up, unless it says the width itself. */
function feedForwardWidth(fields: ConfigFields): number {
  const given = fields.count(fields.has('block_ff_dim') ? 'block_ff_dim' : 'intermediate_size');
  const multiple = fields.count('block_multiple_of', 256);
  const factor = fields.optionalNumber('block_ffn_dim_multiplier');
  if (!fields.flag('block_auto_adjust_ff_dim', true)) return given;
  const part = Math.trunc((2 * given) / 3);
  if (factor === null) return part;
  const width = Math.trunc(factor * part);
  return multiple * Math.ceil(width / multiple);
}

/** What LFM2 has with and without experts. */
function lfm2({ fields, sizes }: RowContext): Differences {
  const listed = fields.has('full_attn_idxs') ? fields.numbers('full_attn_idxs') : null;
  const attends = readAttendingLayers(
    fields,
    sizes.layers,
    'conv',
    (layer) => listed?.includes(layer) ?? true,
  );
  const bias = fields.flag('conv_bias', false);
  const length = kernelLength(fields, 'conv_L_cache', 3);
  // Other names of what transformers takes from the fields of every family.
  for (const name of ['block_dim', 'conv_dim', 'conv_dim_out']) fields.require(name, sizes.hidden);
  fields.require('num_heads', sizes.heads);
  fields.require('block_norm_eps', fields.number('norm_eps'));
  if (fields.has('rope_theta')) fields.require('theta', fields.number('rope_theta'));
  const tied = fields.flag('tie_embedding', fields.flag('tie_word_embeddings', true));
  fields.require('tie_word_embeddings', tied);
  return {
    norm: { kind: 'rms', epsilon: 'norm_eps' },
    names: {
      finalNorm: 'model.embedding_norm',
      output: 'self_attn.out_proj',
      queryNorm: 'self_attn.q_layernorm',
      keyNorm: 'self_attn.k_layernorm',
      attentionNorm: 'operator_norm',
      feedForwardNorm: 'ffn_norm',
      gate: 'feed_forward.w1',
      up: 'feed_forward.w3',
      down: 'feed_forward.w2',
    },
    headNorm: { over: 'head' },
    activation: () => 'silu',
    rotary: { theta: 1_000_000 },
    tied,
    layer: (index) => {
      const name = `model.layers.${index}.conv`;
      if (attends[index]) return {};
      const part = (which: string) => projection(`${name}.${which}`, bias);
      const kernel = { ...part('conv'), length };
      return { mixer: { kind: 'convolution', input: part('in_proj'), kernel, output: part('out_proj') } };
    },
  };
}

/** The bias decides which experts a token uses, but not how much of each. */
const sigmoidExperts = (fields: ConfigFields): ExpertsStyle => ({
  width: 'moe_intermediate_size',
  normalized: fields.flag('norm_topk_prob', true),
  router: 'feed_forward.gate',
  routing: { scores: 'sigmoid', epsilon: 1e-6, scale: fields.number('routed_scaling_factor', 1) },
  ...(fields.flag('use_expert_bias', true) && { correction: 'feed_forward.expert_bias' }),
  matrices: {
    of: (expert) => ({
      gate: `feed_forward.experts.${expert}.w1`,
      up: `feed_forward.experts.${expert}.w3`,
      down: `feed_forward.experts.${expert}.w2`,
    }),
  },
});

export const CONVOLUTION_ROWS: readonly DecoderRow[] = [
  {
    modelTypes: ['lfm2'],
    defaults: { norm_eps: 1e-5, block_ffn_dim_multiplier: 1 },
    ignored: words(`
      block_mlp_init_scale block_out_init_scale block_use_xavier_init conv_use_xavier_init
    `),
    requires: { block_use_swiglu: [true], use_pos_enc: [true] },
    differences: (row) => ({ ...lfm2(row), sizes: { width: feedForwardWidth(row.fields) } }),
  },
  {
    modelTypes: ['lfm2_moe'],
    defaults: { norm_eps: 1e-5, num_experts: 32, num_experts_per_tok: 4, moe_intermediate_size: 1792 },
    ignored: ['output_router_logits'],
    requires: { use_pos_enc: [true] },
    differences: (row) => {
      const { layer, ...others } = lfm2(row);
      const dense = row.fields.number('num_dense_layers', 2);
      return {
        ...others,
        layer: (index) => ({ ...layer?.(index), sparse: index >= dense }),
        experts: sigmoidExperts(row.fields),
      };
    },
  },
];

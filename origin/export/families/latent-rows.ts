import type { ConfigFields } from './config-fields.ts';
import type { DecoderRow, Differences, RowContext } from './decoder-row.ts';
import { projection, rmsNorm } from './design-parts.ts';
import { correctedExperts, DEEPSEEK_TRAINING, deepseekExperts, denseFirst, groupsOf } from './expert-rows.ts';
import type { RouterDesign } from './feed-forward-design.ts';
import { readQueryScaling } from './llama-rows.ts';
import type { LatentDesign } from './mixer-design.ts';
import { yarnMagnitude } from './rotary.ts';
import type { ProjectionDesign, RowRange } from './weight-design.ts';

/** Families with latent attention. */

/** Of the latent vectors: config.json does not have it. */
const LATENT_EPSILON = 1e-6;

interface LatentSizes {
  readonly heads: number;
  readonly rotated: number;
  readonly plain: number;
  readonly value: number;
  readonly kvRank: number;
  readonly queryRank: number | null;
}

function readLatentSizes({ fields, sizes }: RowContext, valueSize?: number): LatentSizes {
  const [rotated, plain] = [fields.count('qk_rope_head_dim'), fields.count('qk_nope_head_dim')];
  const value = fields.count('v_head_dim', valueSize);
  if (value > rotated + plain) throw fields.fault('v_head_dim', `at most ${rotated + plain}`);
  if (sizes.kvHeads !== sizes.heads) throw fields.fault('num_key_value_heads', `${sizes.heads}`);
  fields.require('qk_head_dim', rotated + plain);
  const kvRank = fields.count('kv_lora_rank');
  return {
    heads: sizes.heads,
    rotated,
    plain,
    value,
    kvRank,
    queryRank: fields.optionalCount('q_lora_rank'),
  };
}

/** The same rows of each head. */
const ofHeads = (heads: number, size: number, parts: readonly RowRange[]): RowRange[] =>
  Array.from({ length: heads }, (_, head) =>
    parts.map(({ first, count }) => ({ first: head * size + first, count })),
  ).flat();

/**
 * The rotated values of a head lie behind the others, but the operator for attention rotates the first ones.
 * Scores do not depend on the order.
 */
function latentProjections(sizes: LatentSizes, biased: boolean) {
  const { heads, rotated, plain, value, kvRank, queryRank } = sizes;
  const norm = (name: string) => rmsNorm(name, LATENT_EPSILON);
  return (layer: string) => {
    const name = `${layer}.self_attn`;
    const rowsOf = (which: string, rows: readonly RowRange[], bias = false): ProjectionDesign => ({
      weight: [{ tensor: `${name}.${which}.weight`, rows }],
      bias: bias ? [{ tensor: `${name}.${which}.bias`, rows }] : null,
    });
    const query: LatentDesign['query'] =
      queryRank === null
        ? null
        : {
            width: queryRank,
            projection: projection(`${name}.q_a_proj`, biased),
            norm: norm(`${name}.q_a_layernorm`),
          };
    const down = (first: number, count: number) => rowsOf('kv_a_proj_with_mqa', [{ first, count }], biased);
    const queryRows = [
      { first: plain, count: rotated },
      { first: 0, count: plain },
    ];
    const kvRows = (first: number, count: number) => ofHeads(heads, plain + value, [{ first, count }]);
    return {
      latent: {
        query,
        keyValue: { width: kvRank, projection: down(0, kvRank), norm: norm(`${name}.kv_a_layernorm`) },
        sharedKey: down(kvRank, rotated),
        sharedSize: rotated,
        valueSize: value,
      },
      query: rowsOf(query === null ? 'q_proj' : 'q_b_proj', ofHeads(heads, plain + rotated, queryRows)),
      key: rowsOf('kv_b_proj', kvRows(0, plain)),
      value: rowsOf('kv_b_proj', kvRows(plain, value)),
    };
  };
}

/** YaRN's factor of all dimensions, which multiplies queries and keys here. */
function scaleFactor(fields: ConfigFields): number {
  const parameters = fields.inner('rope_parameters') ?? fields.inner('rope_scaling');
  if (parameters === null) return 1;
  const type = parameters.text('rope_type', parameters.text('type', 'default'));
  if (type === 'default' || !parameters.has('mscale_all_dim')) return 1;
  const share = parameters.number('mscale_all_dim');
  return share === 0 ? 1 : yarnMagnitude(parameters.number('factor'), share) ** 2;
}

export function latent(row: RowContext, options: { interleaved: boolean; valueSize?: number }): Differences {
  const { fields } = row;
  const sizes = readLatentSizes(row, options.valueSize);
  const bias = fields.flag('attention_bias', false);
  const headSize = sizes.rotated + sizes.plain;
  return {
    sizes: { headSize },
    biases: { output: bias },
    projections: latentProjections(sizes, bias),
    attention: { scale: scaleFactor(fields) / Math.sqrt(headSize) },
    rotary: { headSize: sizes.rotated, interleaved: options.interleaved },
  };
}

function groupLimit(fields: ConfigFields): RouterDesign['groups'] {
  const isLimited = fields.choice('topk_method', { greedy: false, group_limited_greedy: true });
  if (isLimited) return groupsOf(fields, 1);
  fields.ignore('n_group', 'topk_group');
  return null;
}

const LATENT_SIZES = { headSize: ['qk_nope_head_dim'] };

export const LATENT_ROWS: readonly DecoderRow[] = [
  {
    modelTypes: ['deepseek_v2'],
    defaults: {
      rms_norm_eps: 1e-6,
      q_lora_rank: 1536,
      first_k_dense_replace: 0,
      routed_scaling_factor: 1,
      topk_method: 'greedy',
    },
    sizeFields: LATENT_SIZES,
    ignored: DEEPSEEK_TRAINING,
    requires: {
      moe_layer_freq: [1],
      scoring_func: ['softmax'],
      mlp_bias: [false],
      // transformers does not read it, but published code does.
      norm_topk_prob: [false],
    },
    differences: (row) => ({
      ...latent(row, { interleaved: true }),
      ...denseFirst(row),
      experts: deepseekExperts(row.fields, { groups: groupLimit(row.fields) }, false),
    }),
  },
  {
    modelTypes: ['deepseek_v3'],
    defaults: {
      rms_norm_eps: 1e-6,
      q_lora_rank: 1536,
      first_k_dense_replace: 3,
      routed_scaling_factor: 2.5,
      norm_topk_prob: true,
      n_group: 8,
      topk_group: 4,
    },
    sizeFields: LATENT_SIZES,
    ignored: DEEPSEEK_TRAINING,
    requires: { moe_layer_freq: [1], scoring_func: ['sigmoid'], topk_method: ['noaux_tc'] },
    differences: (row) => ({
      ...latent(row, { interleaved: row.fields.flag('rope_interleave', true) }),
      ...denseFirst(row),
      experts: correctedExperts(row.fields),
    }),
  },
  {
    modelTypes: ['mistral4'],
    within: ['mistral3'],
    defaults: {
      rms_norm_eps: 1e-6,
      q_lora_rank: 1024,
      first_k_dense_replace: 0,
      routed_scaling_factor: 1,
      norm_topk_prob: true,
      n_group: 1,
      topk_group: 1,
    },
    sizeFields: LATENT_SIZES,
    ignored: DEEPSEEK_TRAINING,
    differences: (row) => {
      const { fields } = row;
      const common = latent(row, { interleaved: fields.flag('rope_interleave', true) });
      const { headSize = 0 } = common.sizes ?? {};
      const partial = fields.count('qk_rope_head_dim') / headSize;
      fields.require('head_dim', headSize);
      fields.require('partial_rotary_factor', partial);
      fields.inner('rope_parameters')?.require('partial_rotary_factor', partial);
      return {
        ...common,
        ...denseFirst(row),
        rotary: { ...common.rotary, headSize, partial },
        attention: { ...common.attention, queryScaling: readQueryScaling(fields) },
        experts: {
          ...deepseekExperts(fields, { groups: groupsOf(fields, 2) }, fields.flag('norm_topk_prob')),
          matrices: {
            stacks: { gateUp: 'mlp.experts.gate_up_proj', down: 'mlp.experts.down_proj' },
            clipped: null,
          },
        },
      };
    },
  },
  {
    modelTypes: ['minicpm3'],
    defaults: { rms_norm_eps: 1e-5, q_lora_rank: 768, scale_emb: 12, scale_depth: 1.4, dim_model_base: 256 },
    sizeFields: LATENT_SIZES,
    differences: (row) => {
      const { fields, sizes } = row;
      const { hidden, layers, heads } = sizes;
      const common = latent(row, { interleaved: false, valueSize: Math.floor(hidden / heads) });
      return {
        ...common,
        biases: { ...common.biases, mlp: fields.flag('mlp_bias', false) },
        residualScale: (fields.optionalNumber('scale_depth') ?? Math.sqrt(layers)) / Math.sqrt(layers),
        tied: true,
        decoder: {
          embeddingScale: fields.number('scale_emb'),
          logitScale: (fields.optionalNumber('dim_model_base') ?? hidden) / hidden,
        },
      };
    },
  },
];

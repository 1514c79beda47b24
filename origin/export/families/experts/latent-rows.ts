import type { RouterDesign } from '../../design/feed-forward-design.ts';
import type { ConfigFields } from '../reading/config-fields.ts';
import type { DecoderRow } from '../reading/decoder-row.ts';
import {
  correctedExperts,
  DEEPSEEK_TRAINING,
  deepseekExperts,
  denseFirst,
  groupsOf,
} from '../reading/expert-styles.ts';
import { latent } from '../reading/latent.ts';
import { readQueryScaling } from '../reading/shared-differences.ts';

/** Families with latent attention. */

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

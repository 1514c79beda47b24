import { words } from '@continuo/shared/field-names.ts';
import type { ConfigFields } from '../reading/config-fields.ts';
import type { DecoderRow, Differences, RowContext } from '../reading/decoder-row.ts';
import {
  correctedExperts,
  DEEPSEEK_TRAINING,
  denseFirst,
  MIXTRAL_EXPERTS,
  ROUTER_TRAINING,
  separate,
} from '../reading/expert-styles.ts';
import { attentionBias, HUNYUAN_FAMILY, hunyuan } from '../reading/shared-differences.ts';
import { byLayer, everywhere } from '../reading/windows.ts';

/** Families with ordinary attention whose experts are not chosen by the best probabilities only. */

/** A number that may be repeated for every layer. */
function sameInLayers({ fields, sizes }: RowContext, name: string): number {
  if (!Array.isArray(fields.value(name))) return fields.count(name);
  const [first = 0, ...others] = fields.numbers(name);
  const isSame = others.length + 1 === sizes.layers && others.every((value) => value === first);
  if (isSame && Number.isSafeInteger(first) && first > 0) return first;
  throw fields.fault(name, `the same whole number of at least 1 for ${sizes.layers} layers`);
}

/** MiniMax M2's files name the rotated values of a head. */
function rotatedShare({ fields, sizes }: RowContext): number {
  if (!fields.has('rotary_dim')) return 1;
  const share = fields.count('rotary_dim') / sizes.headSize;
  fields.require('partial_rotary_factor', share);
  fields.inner('rope_parameters')?.require('partial_rotary_factor', share);
  return share;
}

/** The original context stands among the parameters of the scaling only. */
function phiLayers(fields: ConfigFields): Pick<Differences, 'layer'> {
  const parameters = fields.inner('rope_parameters') ?? fields.inner('rope_scaling');
  const name = 'original_max_position_embeddings';
  fields.require(name, parameters?.optionalNumber(name) ?? null);
  return everywhere(fields);
}

function ernieLayers({ fields, sizes }: RowContext): Pick<Differences, 'layer'> {
  const interval = fields.count('moe_layer_interval');
  const start = fields.number('moe_layer_start_index');
  const given = fields.number('moe_layer_end_index');
  const end = given === -1 ? sizes.layers - 1 : given;
  return { layer: (index) => ({ sparse: (index + 1) % interval === 0 && index >= start && index <= end }) };
}

function ernieShared(fields: ConfigFields) {
  const count = fields.number('moe_num_shared_experts');
  if (count === 0) return {};
  const width = fields.count('moe_intermediate_size') * fields.count('moe_num_shared_experts');
  return { shared: { name: 'mlp.shared_experts', width } };
}

/** Of HunYuan's fields, those that mean something to experts. */
const HUNYUAN_EXPERTS = words(`
  moe_topk norm_topk_prob routed_scaling_factor group_limited_greedy moe_layer_num_skipped moe_intermediate_size
  use_mixed_mlp_moe
`);

export const ROUTED_ROWS: readonly DecoderRow[] = [
  {
    modelTypes: ['glm4_moe'],
    defaults: {
      rms_norm_eps: 1e-5,
      routed_scaling_factor: 1,
      n_group: 1,
      topk_group: 1,
      first_k_dense_replace: 1,
      norm_topk_prob: true,
    },
    ignored: DEEPSEEK_TRAINING,
    differences: (row) => ({
      biases: { qkv: row.fields.flag('attention_bias', false) },
      headNorm: row.fields.flag('use_qk_norm', false) ? { over: 'head' } : null,
      rotary: { partial: 0.5 },
      experts: correctedExperts(row.fields),
      ...denseFirst(row),
    }),
  },
  {
    modelTypes: ['dots1'],
    defaults: {
      rms_norm_eps: 1e-6,
      routed_scaling_factor: 1,
      n_group: 1,
      topk_group: 1,
      first_k_dense_replace: 0,
      norm_topk_prob: false,
      sliding_window: 4096,
      max_window_layers: 62,
    },
    ignored: DEEPSEEK_TRAINING,
    requires: { moe_layer_freq: [1], scoring_func: ['noaux_tc', 'sigmoid'], topk_method: ['noaux_tc'] },
    differences: (row) => {
      const first = row.fields.number('max_window_layers');
      const { window, isSliding } = byLayer(row, (layer) => layer >= first);
      const { layer } = denseFirst(row);
      return {
        biases: attentionBias(row.fields),
        headNorm: { over: 'head' },
        experts: correctedExperts(row.fields),
        layer: (index) => ({ ...layer?.(index), window: isSliding[index] ? window : null }),
      };
    },
  },
  {
    modelTypes: ['ernie4_5_moe'],
    defaults: {
      rms_norm_eps: 1e-5,
      moe_num_shared_experts: 2,
      moe_layer_start_index: 1,
      moe_layer_end_index: -1,
      moe_layer_interval: 1,
      moe_norm_min: 1e-12,
    },
    ignored: [...ROUTER_TRAINING, 'moe_capacity', 'num_nextn_predict_layers'],
    requires: { use_bias: [false], use_rmsnorm: [true], moe_gate: ['topk'], moe_use_aux_free: [true] },
    differences: (row) => {
      const { fields } = row;
      const smallestSum = fields.number('moe_norm_min');
      if (smallestSum <= 0) throw fields.fault('moe_norm_min', 'above 0');
      return {
        rotary: { interleaved: true, theta: 500_000 },
        tied: true,
        experts: {
          ...separate(fields, 'moe_intermediate_size', true),
          counts: { experts: 'moe_num_experts', active: fields.count('moe_k') },
          correction: 'mlp.moe_statics.e_score_correction_bias',
          routing: { smallestSum },
          ...ernieShared(fields),
        },
        ...ernieLayers(row),
      };
    },
  },
  {
    modelTypes: ['phimoe'],
    defaults: { rms_norm_eps: 1e-5, router_jitter_noise: 0.01 },
    ignored: ['output_router_logits', 'router_aux_loss_coef', 'input_jitter_noise'],
    requires: { num_experts_per_tok: [2] },
    differences: ({ fields }) => ({
      ...phiLayers(fields),
      norm: { kind: 'layer', epsilon: 'rms_norm_eps', biased: true },
      biases: { ...attentionBias(fields), head: fields.flag('lm_head_bias', false) },
      rotary: { theta: 1_000_000, shortScale: true },
      experts: {
        ...MIXTRAL_EXPERTS,
        normalized: false,
        counts: { experts: 'num_local_experts', active: 2 },
        routing: { scores: { kind: 'sparse-mixer', reach: 2 * fields.number('router_jitter_noise') } },
      },
    }),
  },
  {
    modelTypes: ['minimax_m2'],
    defaults: { rms_norm_eps: 1e-6, head_dim: 128 },
    ignored: [
      ...ROUTER_TRAINING,
      ...words('mlp_intermediate_size mtp_transformer_layers num_mtp_modules use_mtp shared_moe_mode'),
    ],
    requires: {
      scoring_func: ['sigmoid'],
      use_routing_bias: [true],
      shared_intermediate_size: [0],
      qk_norm_type: ['per_layer'],
      layernorm_full_attention_beta: [1],
      layernorm_linear_attention_beta: [1],
      layernorm_mlp_beta: [1],
    },
    differences: (row) => {
      row.fields.require('attn_type_list', Array<number>(row.sizes.layers).fill(1));
      return {
        headNorm: { over: 'width' },
        rotary: { theta: 5_000_000, partial: rotatedShare(row) },
        experts: {
          ...MIXTRAL_EXPERTS,
          correction: 'block_sparse_moe.e_score_correction_bias',
          routing: { scores: 'sigmoid' },
        },
      };
    },
  },
  {
    modelTypes: ['hunyuan_v1_moe'],
    defaults: { rms_norm_eps: 1e-5 },
    ignored: [...HUNYUAN_FAMILY.filter((name) => !HUNYUAN_EXPERTS.includes(name)), ...ROUTER_TRAINING],
    requires: {
      norm_topk_prob: [true],
      routed_scaling_factor: [1],
      group_limited_greedy: [false],
      moe_layer_num_skipped: [0],
      use_mixed_mlp_moe: [true],
    },
    differences: (row) => {
      const { fields, sizes } = row;
      for (const [name, value] of [
        ['moe_intermediate_size', sizes.width],
        ['num_shared_expert', 1],
      ] as const)
        fields.require(name, value, Array<number>(sizes.layers).fill(value));
      return {
        ...hunyuan(fields),
        experts: {
          ...separate(fields, 'intermediate_size', true),
          counts: { experts: 'num_experts', active: sameInLayers(row, 'moe_topk') },
          router: 'mlp.gate.wg',
          shared: { name: 'mlp.shared_mlp', width: sizes.width },
        },
      };
    },
  },
];

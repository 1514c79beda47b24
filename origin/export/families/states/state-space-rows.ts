import { words } from '@continuo/shared/field-names.ts';
import type { StateSpaceDesign } from '../../design/mixer-design.ts';
import type { ConfigFields } from '../reading/config-fields.ts';
import type { DecoderRow, Differences, RowContext } from '../reading/decoder-row.ts';
import { GRANITE_EXPERTS } from '../reading/expert-styles.ts';
import { attentionBias, graniteFactors, mlpBias } from '../reading/shared-differences.ts';
import type { Sizes } from '../reading/sizes.ts';
import {
  describeStateSpace,
  readStateSpace,
  type StateSpaceFields,
  type StateSpaceSizes,
} from './state-space.ts';

/** Families with state spaces (Mamba 2) in place of attention in most layers, or beside it. */

const ATTENDS: Readonly<Record<string, boolean>> = {
  attention: true,
  full_attention: true,
  mamba: false,
  linear_attention: false,
};

/** For each layer of layer_types, whether it attends. */
function attendingLayers(fields: ConfigFields, { layers }: Sizes): boolean[] {
  const types = fields.has('layer_types') ? fields.texts('layer_types') : [];
  const attends = types.flatMap((type) => ATTENDS[type] ?? []);
  if (attends.length === layers && attends.includes(true)) return attends;
  throw fields.fault('layer_types', `${layers} of ${Object.keys(ATTENDS).join(', ')}, one of attention`);
}

/** A state space in the layers that do not attend. */
function mambaLayers({ fields, sizes }: RowContext, attends: readonly boolean[]): Pick<Differences, 'layer'> {
  if (!attends.includes(false)) {
    fields.ignore('mamba_expand', ...MAMBA_NAMES);
    return {};
  }
  const stateSpace = readMamba(fields, sizes);
  return {
    layer: (index) =>
      attends[index] ? {} : { mixer: describeStateSpace(`model.layers.${index}.mamba`, stateSpace) },
  };
}

const MAMBA = {
  heads: ['mamba_n_heads', 128],
  valueSize: 'mamba_d_head',
  keyHeads: ['mamba_n_groups', 1],
  keySize: ['mamba_d_state', 256],
  length: 'mamba_d_conv',
  kernelBias: 'mamba_conv_bias',
  bias: 'mamba_proj_bias',
  stepLimits: 'time_step_limit',
} as const satisfies StateSpaceFields;

const MAMBA_NAMES = Object.values(MAMBA).map((field) => (typeof field === 'string' ? field : field[0]));

/** @param given the width, if a field of its own says it */
function readMamba(fields: ConfigFields, { hidden }: Sizes, given: number | null = null): StateSpaceSizes {
  const expanded = fields.count('mamba_expand', 2) * hidden;
  const epsilon = fields.number('rms_norm_eps');
  return readStateSpace(fields, MAMBA, { width: given ?? expanded, epsilon, words: ['auto'] });
}

const ROTARY_FIELDS = ['rope_theta', 'rope_scaling', 'rope_parameters'];

/** Positions are rotated only if position_embedding_type is rope. */
function graniteRotary(fields: ConfigFields): Pick<Differences, 'rotary'> {
  const kinds = { rope: true, nope: false };
  if (fields.has('position_embedding_type') && fields.choice('position_embedding_type', kinds)) {
    return { rotary: {} };
  }
  fields.ignore(...ROTARY_FIELDS);
  return { rotary: null };
}

function granite(row: RowContext): Differences {
  const { fields, sizes } = row;
  const isSparse = fields.number('num_local_experts') > 0;
  if (!isSparse) fields.ignore('num_local_experts', 'num_experts_per_tok', 'intermediate_size');
  return {
    biases: attentionBias(fields),
    names: { gateUp: 'shared_mlp.input_linear', down: 'shared_mlp.output_linear' },
    mlp: 'fused',
    experts: isSparse ? { ...GRANITE_EXPERTS, shared: 'mlp' } : null,
    ...graniteRotary(fields),
    ...graniteFactors(row),
    ...mambaLayers(row, attendingLayers(fields, sizes)),
  };
}

const FEED_FORWARD_NAMES = {
  finalNorm: 'model.final_layernorm',
  feedForwardNorm: 'pre_ff_layernorm',
  gate: 'feed_forward.gate_proj',
  up: 'feed_forward.up_proj',
  down: 'feed_forward.down_proj',
};

function bamba(row: RowContext): Differences {
  const { fields, sizes } = row;
  const indices = fields.has('attn_layer_indices') ? fields.numbers('attn_layer_indices') : [];
  const attends = Array.from({ length: sizes.layers }, (_, layer) => indices.includes(layer));
  if (!attends.includes(true)) throw fields.fault('attn_layer_indices', 'a layer of attention');
  return {
    biases: { ...attentionBias(fields), ...mlpBias(fields) },
    names: FEED_FORWARD_NAMES,
    // Beside rope_parameters, the field changes nothing.
    rotary: { partial: 0.5, partialField: null },
    ...mambaLayers(row, attends),
  };
}

/** Two or five multipliers; absent = 1. */
function readMultipliers(fields: ConfigFields, name: string, count: number): readonly number[] {
  const values = fields.has(name) ? fields.numbers(name) : Array<number>(count).fill(1);
  if (values.length !== count) throw fields.fault(name, `${count} numbers`);
  return values;
}

/** Attention and a state space in every layer. */
function falconLayers({ fields, sizes }: RowContext): Pick<Differences, 'layer'> {
  const width = fields.has('mamba_d_ssm') ? fields.count('mamba_d_ssm') : null;
  const read = readMamba(fields, sizes, width);
  const stateSpace = { ...read, outputBias: fields.flag('projectors_bias', false) };
  const [gate, value, key, query, step] = readMultipliers(fields, 'ssm_multipliers', 5);
  const multipliers = {
    input: fields.number('ssm_in_multiplier', 1),
    gate: gate!,
    value: value!,
    key: key!,
    query: query!,
    step: step!,
    output: fields.number('ssm_out_multiplier', 1),
  };
  const isNormed = fields.flag('mamba_rms_norm', false);
  const isBefore = fields.flag('mamba_norm_before_gate', true) && isNormed;
  const normPlace: StateSpaceDesign['normPlace'] = isBefore ? 'before-gate' : 'after-gate';
  const factors = {
    inputFactor: fields.number('attention_in_multiplier', 1),
    outputFactor: fields.number('attention_out_multiplier', 1),
  };
  return {
    layer: (index) => {
      const described = describeStateSpace(`model.layers.${index}.mamba`, stateSpace);
      const norm = isNormed ? described.norm : null;
      return { parallel: { ...factors, stateSpace: { ...described, norm, normPlace, multipliers } } };
    },
  };
}

function falconH1(row: RowContext): Differences {
  const { fields, sizes } = row;
  const [gate, output] = readMultipliers(fields, 'mlp_multipliers', 2);
  return {
    biases: { ...attentionBias(fields), ...mlpBias(fields) },
    names: FEED_FORWARD_NAMES,
    mlpMultipliers: { gate: gate!, output: output! },
    attention: { scale: fields.number('key_multiplier', 1) / Math.sqrt(sizes.headSize) },
    decoder: {
      embeddingScale: fields.number('embedding_multiplier', 1),
      logitScale: fields.number('lm_head_multiplier', 1),
    },
    ...falconLayers(row),
  };
}

export const STATE_SPACE_ROWS: readonly DecoderRow[] = [
  {
    modelTypes: ['granitemoehybrid'],
    defaults: { rms_norm_eps: 1e-6, num_local_experts: 8, num_experts_per_tok: 2 },
    sizeFields: { width: ['shared_intermediate_size'] },
    ignored: words('output_router_logits router_aux_loss_coef init_method mamba_chunk_size'),
    requires: { hidden_act: ['silu'] },
    differences: granite,
  },
  {
    modelTypes: ['bamba'],
    defaults: { rms_norm_eps: 1e-5, num_key_value_heads: 8 },
    ignored: words('num_logits_to_keep z_loss_coefficient mamba_chunk_size'),
    requires: { hidden_act: ['silu'] },
    differences: bamba,
  },
  {
    modelTypes: ['falcon_h1'],
    defaults: { rms_norm_eps: 1e-5, num_key_value_heads: 8, mamba_d_ssm: 1024 },
    ignored: words('num_logits_to_keep mamba_chunk_size mlp_expansion_factor'),
    requires: { hidden_act: ['silu'], mamba_use_mlp: [true], attn_layer_indices: [] },
    differences: falconH1,
  },
];

import { words } from '@continuo/shared/field-names.ts';
import type { LinearAttentionDesign, RecurrenceShape } from '../../design/mixer-design.ts';
import { type ProjectionDesign, whole } from '../../design/weight-design.ts';
import type { ConfigFields } from '../reading/config-fields.ts';
import type { DecoderRow, Differences, LayerDifferences, RowContext } from '../reading/decoder-row.ts';
import {
  chosenRows,
  interleaved,
  kernelLength,
  projection,
  readAttendingLayers,
  rmsNorm,
} from '../reading/design-parts.ts';
import { gatedShared, ROUTER_TRAINING, separate, withDenseLayers } from '../reading/expert-styles.ts';
import { attentionBias, NORMS_AFTER } from '../reading/shared-differences.ts';
import type { Sizes } from '../reading/sizes.ts';

/** Families with gated delta networks in place of attention in most layers. */

const LINEAR = 'linear_attention';

/** Sizes that are absent follow from the others in OLMo Hybrid; Qwen's have other defaults. */
function readShape(fields: ConfigFields, { heads: attentionHeads, hidden }: Sizes): RecurrenceShape {
  const keyHeads = fields.count('linear_num_key_heads', attentionHeads);
  const heads = fields.count('linear_num_value_heads', attentionHeads);
  if (heads % keyHeads !== 0) throw fields.fault('linear_num_value_heads', `a multiple of ${keyHeads}`);
  const keySize = fields.count('linear_key_head_dim', Math.trunc((0.75 * hidden) / keyHeads));
  const valueSize = fields.count('linear_value_head_dim', 2 * keySize);
  return { keyHeads, heads, keySize, valueSize };
}

/** Without layer_types, every full_attention_interval-th layer attends. */
function everyNth(fields: ConfigFields, { layers }: Sizes): (layer: number) => boolean {
  if (fields.has('layer_types')) {
    fields.ignore('full_attention_interval');
    return () => false;
  }
  const interval = fields.count('full_attention_interval', 4);
  if (interval > layers) throw fields.fault('full_attention_interval', `at most ${layers}`);
  return (layer) => (layer + 1) % interval === 0;
}

type Inputs = Pick<LinearAttentionDesign, 'query' | 'key' | 'value' | 'gate' | 'decay' | 'rate'>;

/** Rows of one tensor, one part after another. */
const blocks = (name: string, sizes: readonly number[]): ProjectionDesign[] =>
  sizes.map((count, index) => {
    const first = sizes.slice(0, index).reduce((sum, size) => sum + size, 0);
    return chosenRows(projection(name, false), [{ first, count }]);
  });

/** Qwen 3.5: a matrix of queries, keys and values, and one each of the rest. */
function apart(layer: string, { keyHeads, heads, keySize, valueSize }: RecurrenceShape): Inputs {
  const of = (name: string) => projection(`${layer}.${name}`, false);
  const sizes = [keyHeads * keySize, keyHeads * keySize, heads * valueSize];
  const [query, key, value] = blocks(`${layer}.in_proj_qkv`, sizes) as [
    ProjectionDesign,
    ProjectionDesign,
    ProjectionDesign,
  ];
  return { query, key, value, gate: of('in_proj_z'), rate: of('in_proj_b'), decay: of('in_proj_a') };
}

/** Qwen 3 Next: for each head of keys its query, its key, its values and their gates in one matrix. */
function byKeyHead(layer: string, { keyHeads, heads, keySize, valueSize }: RecurrenceShape): Inputs {
  const shared = heads / keyHeads;
  const values = shared * valueSize;
  const part = (name: string, size: number, offset: number, count: number) =>
    chosenRows(projection(`${layer}.${name}`, false), interleaved(keyHeads, size, offset, count));
  const main = (offset: number, count: number) =>
    part('in_proj_qkvz', 2 * keySize + 2 * values, offset, count);
  return {
    query: main(0, keySize),
    key: main(keySize, keySize),
    value: main(2 * keySize, values),
    gate: main(2 * keySize + values, values),
    rate: part('in_proj_ba', 2 * shared, 0, shared),
    decay: part('in_proj_ba', 2 * shared, shared, shared),
  };
}

/** What Qwen 3 Next and Qwen 3.5 have in common. */
function qwen(
  { fields, sizes }: RowContext,
  inputs: (layer: string, shape: RecurrenceShape) => Inputs,
): Differences & { readonly layer: (index: number) => LayerDifferences } {
  const attends = readAttendingLayers(fields, sizes.layers, LINEAR, everyNth(fields, sizes));
  const shape = readShape(fields, sizes);
  const length = kernelLength(fields, 'linear_conv_kernel_dim');
  // The convolution has the activation of the MLP.
  fields.require('hidden_act', 'silu', 'swish');
  const epsilon = fields.number('rms_norm_eps');
  // Positions of images. Those of text are the same in all of its parts.
  fields.inner('rope_parameters')?.ignore('mrope_section', 'mrope_interleaved');
  const bias = fields.flag('attention_bias', false);
  return {
    norm: { kind: 'rms', epsilon: 'rms_norm_eps', weightOffset: 1 },
    headNorm: { over: 'head' },
    biases: { qkv: bias, output: bias },
    gatedHeads: true,
    rotary: { partial: 0.25 },
    layer: (index) => {
      if (attends[index]) return {};
      const layer = `model.layers.${index}.linear_attn`;
      return {
        mixer: {
          kind: 'linear-attention',
          ...shape,
          ...inputs(layer, shape),
          kernel: { length, weight: whole(`${layer}.conv1d.weight`), bias: null },
          decayBias: whole(`${layer}.dt_bias`),
          logDecay: whole(`${layer}.A_log`),
          rateScale: 1,
          narrow: null,
          norm: rmsNorm(`${layer}.norm`, epsilon),
          output: projection(`${layer}.out_proj`, false),
        },
      };
    },
  };
}

/** OLMo Hybrid: norms before linear attention, but after attention as in OLMo 3. */
function olmoHybrid({ fields, sizes }: RowContext): Differences {
  const { layers } = sizes;
  const attends = readAttendingLayers(
    fields,
    layers,
    LINEAR,
    (layer) => layer % 4 === 3 || (layers < 4 && layer === layers - 1),
  );
  const shape = readShape(fields, sizes);
  const length = kernelLength(fields, 'linear_conv_kernel_dim');
  // The convolution has the activation of the MLP.
  fields.require('hidden_act', 'silu', 'swish');
  const rateScale = fields.flag('linear_allow_neg_eigval', true) ? 2 : 1;
  // A null means no rotary positions. transformers takes an absent rope_theta, or no object, for 10,000.
  const parameters = fields.inner('rope_parameters');
  if (!Object.hasOwn(fields.value('rope_parameters') ?? {}, 'rope_theta')) {
    throw fields.fault('rope_parameters', 'an object with rope_theta, which is null or a number');
  }
  const rotated = parameters?.has('rope_theta') === true;
  if (!rotated) parameters?.require('rope_type', 'default');
  return {
    biases: attentionBias(fields),
    headNorm: { over: 'width' },
    rotary: rotated ? { reads: 'rope_parameters' } : null,
    layer: (index) => {
      if (attends[index]) return { names: NORMS_AFTER };
      const layer = `model.layers.${index}.linear_attn`;
      const of = (name: string) => projection(`${layer}.${name}`, false);
      const taps = ['q', 'k', 'v'].map((name) => ({ tensor: `${layer}.${name}_conv1d.weight` }));
      return {
        mixer: {
          kind: 'linear-attention',
          ...shape,
          query: of('q_proj'),
          key: of('k_proj'),
          value: of('v_proj'),
          gate: of('g_proj'),
          rate: of('b_proj'),
          decay: of('a_proj'),
          kernel: { length, weight: taps, bias: null },
          decayBias: whole(`${layer}.dt_bias`),
          logDecay: whole(`${layer}.A_log`),
          rateScale,
          narrow: null,
          norm: rmsNorm(`${layer}.o_norm`, 1e-5),
          output: of('o_proj'),
        },
      };
    },
  };
}

const QWEN_DEFAULTS = {
  rms_norm_eps: 1e-6,
  head_dim: 256,
  linear_conv_kernel_dim: 4,
  linear_key_head_dim: 128,
  linear_value_head_dim: 128,
  linear_num_key_heads: 16,
  linear_num_value_heads: 32,
};

const sharedExperts = (fields: ConfigFields, normalized: boolean) => ({
  ...separate(fields, 'moe_intermediate_size'),
  ...(normalized && { normalized }),
  shared: gatedShared(fields),
});

/** Layers that predict further tokens are not served. The state is always in float32. */
const QWEN_35_IGNORED = words('mtp_num_hidden_layers mtp_use_dedicated_embeddings mamba_ssm_dtype');

export const LINEAR_ATTENTION_ROWS: readonly DecoderRow[] = [
  {
    modelTypes: ['qwen3_next'],
    defaults: { ...QWEN_DEFAULTS, norm_topk_prob: true },
    ignored: ROUTER_TRAINING,
    differences: (row) => {
      const common = qwen(row, byKeyHead);
      return {
        ...common,
        experts: sharedExperts(row.fields, false),
        ...withDenseLayers(row, common.layer),
      };
    },
  },
  {
    modelTypes: ['olmo_hybrid'],
    defaults: { rms_norm_eps: 1e-6 },
    // How weights were drawn before the training.
    ignored: words('linear_a_log_min linear_a_log_max linear_dt_min linear_dt_max linear_dt_init_floor'),
    aliases: {
      input_layernorm: 'attention_layer_norm',
      post_attention_layernorm: 'feedforward_layer_norm',
    },
    differences: olmoHybrid,
  },
  {
    modelTypes: ['qwen3_5_text'],
    within: ['qwen3_5'],
    defaults: QWEN_DEFAULTS,
    ignored: QWEN_35_IGNORED,
    requires: { attn_output_gate: [true], output_gate_type: ['swish'], mlp_only_layers: [[]] },
    differences: (row) => qwen(row, apart),
  },
  {
    modelTypes: ['qwen3_5_moe_text'],
    within: ['qwen3_5_moe'],
    defaults: QWEN_DEFAULTS,
    ignored: [...QWEN_35_IGNORED, ...ROUTER_TRAINING, 'intermediate_size'],
    requires: {
      attn_output_gate: [true],
      output_gate_type: ['swish'],
      mlp_only_layers: [[]],
      norm_topk_prob: [true],
    },
    differences: (row) => ({ ...qwen(row, apart), experts: sharedExperts(row.fields, true) }),
  },
];

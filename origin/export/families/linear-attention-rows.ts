import { ModelError } from '@continuo/origin/model/config/model-json.ts';
import { words } from '@continuo/shared/field-names.ts';
import type { ConfigFields } from './config-fields.ts';
import {
  type LinearAttentionDesign,
  type ProjectionDesign,
  type RecurrenceShape,
  whole,
} from './decoder-design.ts';
import type { DecoderRow, Differences, LayerDifferences, RowContext, Sizes } from './decoder-row.ts';
import { chosenRows, interleaved, projection } from './design-parts.ts';
import { ROUTER_TRAINING, separate, withDenseLayers } from './expert-rows.ts';

/** Families with gated delta networks in place of attention in most layers. */

const FULL = 'full_attention';
const LINEAR = 'linear_attention';

/** For each layer, whether it attends: from layer_types, else every full_attention_interval-th. */
function attendingLayers(fields: ConfigFields, { layers }: Sizes): boolean[] {
  if (!fields.has('layer_types')) {
    const interval = fields.count('full_attention_interval', 4);
    return Array.from({ length: layers }, (_, layer) => (layer + 1) % interval === 0);
  }
  fields.ignore('full_attention_interval');
  const types = fields.texts('layer_types');
  const unknown = types.find((type) => type !== FULL && type !== LINEAR);
  if (unknown !== undefined) {
    throw new ModelError(`config.json: layer_types has ${unknown}; supported are ${FULL}, ${LINEAR}`);
  }
  if (types.length !== layers) throw fields.fault('layer_types', `${layers} types`);
  return types.map((type) => type === FULL);
}

function readShape(fields: ConfigFields): RecurrenceShape {
  const [keyHeads, heads] = [fields.count('linear_num_key_heads'), fields.count('linear_num_value_heads')];
  if (heads % keyHeads !== 0) throw fields.fault('linear_num_value_heads', `a multiple of ${keyHeads}`);
  const [keySize, valueSize] = [fields.count('linear_key_head_dim'), fields.count('linear_value_head_dim')];
  return { keyHeads, heads, keySize, valueSize };
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
  const attends = attendingLayers(fields, sizes);
  if (!attends.includes(true)) throw fields.fault('layer_types', `a layer of ${FULL}`);
  const shape = readShape(fields);
  const length = fields.count('linear_conv_kernel_dim');
  if (length < 2) throw fields.fault('linear_conv_kernel_dim', 'at least 2');
  const epsilon = fields.number('rms_norm_eps');
  // The convolution has the activation of the MLP.
  fields.require('hidden_act', 'silu', 'swish');
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
      const norm = { kind: 'rms', epsilon, weight: whole(`${layer}.norm.weight`), bias: null } as const;
      return {
        mixer: {
          kind: 'linear-attention',
          ...shape,
          ...inputs(layer, shape),
          kernel: { length, weight: whole(`${layer}.conv1d.weight`), bias: null },
          decayBias: whole(`${layer}.dt_bias`),
          logDecay: whole(`${layer}.A_log`),
          rateScale: 1,
          norm: { ...norm, weightOffset: 0 },
          output: projection(`${layer}.out_proj`, false),
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
  shared: {
    name: 'mlp.shared_expert',
    width: fields.count('shared_expert_intermediate_size'),
    gate: 'mlp.shared_expert_gate',
  },
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
    modelTypes: ['qwen3_5_text'],
    within: ['qwen3_5'],
    defaults: QWEN_DEFAULTS,
    ignored: QWEN_35_IGNORED,
    requires: { attn_output_gate: [true], mlp_only_layers: [[]] },
    differences: (row) => qwen(row, apart),
  },
  {
    modelTypes: ['qwen3_5_moe_text'],
    within: ['qwen3_5_moe'],
    defaults: QWEN_DEFAULTS,
    ignored: [...QWEN_35_IGNORED, ...ROUTER_TRAINING, 'intermediate_size'],
    requires: { attn_output_gate: [true], mlp_only_layers: [[]], norm_topk_prob: [true] },
    differences: (row) => ({ ...qwen(row, apart), experts: sharedExperts(row.fields, true) }),
  },
];

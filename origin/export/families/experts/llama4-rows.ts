import type { HeadNormDesign } from '../../design/mixer-design.ts';
import type { ConfigFields } from '../reading/config-fields.ts';
import type {
  DecoderRow,
  Differences,
  ExpertsStyle,
  LayerDifferences,
  RowContext,
} from '../reading/decoder-row.ts';
import { readLayerTypes } from '../reading/design-parts.ts';
import { ROUTER_TRAINING } from '../reading/expert-styles.ts';

/** Llama 4: attention within chunks, layers without rotary positions, experts whose inputs are scaled. */

function rotatedLayers({ fields, sizes }: RowContext): (layer: number) => boolean {
  const interval = fields.count('no_rope_layer_interval', 4);
  const listed = fields.has('no_rope_layers') ? fields.numbers('no_rope_layers') : [];
  if (listed.length > 0 && listed.length < sizes.layers)
    throw fields.fault('no_rope_layers', `${sizes.layers} numbers`);
  return (layer) => (listed[layer] ?? (layer + 1) % interval) !== 0;
}

/** Within its first chunk, a layer attends to all positions: that is the limit of the context. */
function chunkLength(row: RowContext, isRotated: (layer: number) => boolean): number {
  const { fields, sizes } = row;
  const types = readLayerTypes(fields, sizes.layers, ['chunked_attention', 'full_attention']);
  const isChunked = (layer: number) =>
    types === null ? isRotated(layer) : types[layer] === 'chunked_attention';
  const chunk = fields.optionalCount('attention_chunk_size');
  if (!Array.from({ length: sizes.layers }, (_, layer) => isChunked(layer)).includes(true)) return Infinity;
  if (chunk === null) throw fields.fault('attention_chunk_size', 'a positive integer');
  return chunk;
}

function isSparse(fields: ConfigFields): (layer: number) => boolean {
  const step = fields.count('interleave_moe_layer_step', 1);
  if (!fields.has('moe_layers')) return (layer) => (layer + 1) % step === 0;
  const listed = fields.numbers('moe_layers');
  return (layer) => listed.includes(layer);
}

function queryScaling(fields: ConfigFields): NonNullable<LayerDifferences['attention']> {
  // Published files have a number, which is true in Python.
  const given = fields.value('attn_temperature_tuning');
  const isUsed = typeof given === 'number' ? given !== 0 : fields.flag('attn_temperature_tuning', true);
  const beta = fields.number('attn_scale', 0.1);
  const originalPositions = fields.count('floor_scale', 8192);
  return isUsed ? { queryScaling: { beta, originalPositions, first: 1 } } : {};
}

const experts = (fields: ConfigFields): ExpertsStyle => ({
  width: 'intermediate_size',
  counts: { experts: 'num_local_experts', active: fields.count('num_experts_per_tok') },
  normalized: false,
  router: 'feed_forward.router',
  routing: { scores: 'sigmoid', scalesInput: true },
  matrices: {
    stacks: { gateUp: 'feed_forward.experts.gate_up_proj', down: 'feed_forward.experts.down_proj' },
    clipped: null,
    transposed: true,
  },
  shared: { name: 'feed_forward.shared_expert', width: fields.count('intermediate_size') },
});

function differences(row: RowContext): Differences {
  const { fields } = row;
  const isRotated = rotatedLayers(row);
  const sparse = isSparse(fields);
  const scaling = queryScaling(fields);
  const norm: HeadNormDesign = {
    kind: 'rms',
    epsilon: fields.number('rms_norm_eps'),
    weight: null,
    bias: null,
    weightOffset: 0,
    over: 'head',
  };
  const norms = fields.flag('use_qk_norm', true) ? { queryNorm: norm, keyNorm: norm } : {};
  const biased = fields.flag('attention_bias', false);
  return {
    sizes: { width: fields.count('intermediate_size_mlp') },
    biases: { qkv: biased, output: biased },
    names: {
      gate: 'feed_forward.gate_proj',
      up: 'feed_forward.up_proj',
      down: 'feed_forward.down_proj',
    },
    attention: { normPlace: 'after-rotary' },
    rotary: { theta: 500_000, interleaved: true },
    maxPositions: chunkLength(row, isRotated),
    experts: experts(fields),
    layer: (index) => ({
      rotated: isRotated(index),
      sparse: sparse(index),
      attention: isRotated(index) ? norms : scaling,
    }),
  };
}

export const LLAMA4_ROWS: readonly DecoderRow[] = [
  {
    modelTypes: ['llama4_text'],
    within: ['llama4'],
    defaults: {
      vocab_size: 202_048,
      hidden_size: 5120,
      intermediate_size: 8192,
      intermediate_size_mlp: 16_384,
      num_hidden_layers: 48,
      num_attention_heads: 40,
      num_key_value_heads: 8,
      head_dim: 128,
      max_position_embeddings: 131_072,
      rms_norm_eps: 1e-5,
      num_experts_per_tok: 1,
      num_local_experts: 16,
      attention_chunk_size: 8192,
    },
    ignored: [...ROUTER_TRAINING, 'for_llm_compressor'],
    differences,
  },
];

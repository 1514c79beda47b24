import type { TokenInputDesign, TokenInputsDesign } from '../../design/decoder-design.ts';
import { whole } from '../../design/weight-design.ts';
import type { ConfigFields } from '../reading/config-fields.ts';
import type {
  DecoderRow,
  Differences,
  ExpertsStyle,
  LayerDifferences,
  RowContext,
} from '../reading/decoder-row.ts';
import { projection, readSlidingLayers, rmsNorm } from '../reading/design-parts.ts';
import type { Sizes } from '../reading/sizes.ts';
import { NORMS_AROUND } from './gemma-rows.ts';

/** Gemma 4: heads of two sizes, layers that read the KV of earlier ones, vectors of each token by layer. */

/** What Gemma 3n has, too. */
export const GEMMA_BLOCK = {
  activation: () => 'gelu-tanh',
  tied: true,
  names: NORMS_AROUND,
  headNorm: { over: 'head' },
  normedValues: true,
  attention: { scale: 1 },
} as const satisfies Differences;

interface GlobalSizes {
  readonly kvHeads: number;
  readonly headSize: number;
}

/** Sizes of layers without a window: in fields of their own, or as transformers 5 writes them by layer. */
function globalSizes({ fields, sizes }: RowContext, isSliding: readonly boolean[]): GlobalSizes {
  const listed = fields.inner('per_layer_config');
  const sameKeys = fields.flag('attention_k_eq_v', false);
  if (listed === null) {
    const kvHeads = sameKeys ? fields.optionalCount('num_global_key_value_heads') : null;
    fields.ignore('num_global_key_value_heads');
    return { headSize: fields.count('global_head_dim', 512), kvHeads: kvHeads ?? sizes.kvHeads };
  }
  fields.ignore('global_head_dim', 'num_global_key_value_heads');
  const full = isSliding.flatMap((sliding, layer) => (sliding ? [] : layer));
  const each = full.map((layer) => {
    const layerFields = listed.inner(`${layer}`);
    if (layerFields === null) throw listed.fault(`${layer}`, 'an object, for each layer of full attention');
    return {
      headSize: layerFields.count('head_dim', sizes.headSize),
      kvHeads: layerFields.count('num_key_value_heads', sizes.kvHeads),
    };
  });
  const [first] = each;
  if (each.every(({ headSize, kvHeads }) => headSize === first!.headSize && kvHeads === first!.kvHeads))
    return first!;
  throw fields.fault('per_layer_config', 'the same sizes for all layers of full attention');
}

/** The last layers read the KV of the last one of their type before them. */
export function sharedLayers(
  fields: ConfigFields,
  isSliding: readonly boolean[],
): (index: number) => number | null {
  const shared = fields.number('num_kv_shared_layers', 0);
  const first = isSliding.length - shared;
  const withKv = isSliding.slice(0, Math.max(0, first));
  if (!Number.isInteger(shared) || shared < 0 || isSliding.some((type) => !withKv.includes(type)))
    throw fields.fault('num_kv_shared_layers', 'fewer layers, so that each type has one with KV');
  return (index) => (index < first ? null : withKv.lastIndexOf(isSliding[index]!));
}

const EXPERTS: ExpertsStyle = {
  width: 'moe_intermediate_size',
  normalized: true,
  router: 'router.proj',
  matrices: { stacks: { gateUp: 'experts.gate_up_proj', down: 'experts.down_proj' }, clipped: null },
};

function experts({ fields, sizes }: RowContext): ExpertsStyle | null {
  if (!fields.flag('enable_moe_block', false)) return null;
  const norm = {
    kind: 'rms' as const,
    epsilon: fields.number('rms_norm_eps'),
    bias: null,
    weightOffset: 0 as const,
  };
  return {
    ...EXPERTS,
    counts: { experts: 'num_experts', active: fields.count('top_k_experts') },
    routerScales: (layer) => ({
      input: { norm: { ...norm, weight: whole(`${layer}.router.scale`) }, factor: sizes.hidden ** -0.5 },
      expertScales: whole(`${layer}.router.per_expert_scale`),
    }),
  };
}

const BESIDE = {
  mlpOutputNorm: 'post_feedforward_layernorm_1',
  expertsNorm: 'pre_feedforward_layernorm_2',
  expertsOutputNorm: 'post_feedforward_layernorm_2',
};

/** Width of the vector that each layer has of a token; 0 = none. */
function tokenWidth({ fields, sizes }: RowContext): number {
  const width = fields.number('hidden_size_per_layer_input', 256);
  if (width === 0) fields.ignore('vocab_size_per_layer_input');
  else if (fields.count('vocab_size_per_layer_input', 262_144) !== sizes.vocabulary)
    throw fields.fault('vocab_size_per_layer_input', `vocab_size, ${sizes.vocabulary}`);
  return width;
}

const partsOf = (name: string, width: number, epsilon: number): NonNullable<LayerDifferences['parts']> => ({
  tokenInput: width === 0 ? null : tokenInput(name, width, epsilon),
  outputScale: whole(`${name}.layer_scalar`),
});

export const tokenInput = (name: string, width: number, epsilon: number): TokenInputDesign => ({
  width,
  gate: projection(`${name}.per_layer_input_gate`, false),
  activation: 'gelu-tanh',
  projection: projection(`${name}.per_layer_projection`, false),
  norm: rmsNorm(`${name}.post_per_layer_input_norm`, epsilon),
});

export const tokenInputs = (
  { hidden }: Sizes,
  { width, vocabulary }: Pick<TokenInputsDesign, 'width' | 'vocabulary'>,
  epsilon: number,
): TokenInputsDesign => ({
  width,
  vocabulary,
  embedding: whole('model.embed_tokens_per_layer.weight'),
  embeddingScale: Math.sqrt(width),
  projection: projection('model.per_layer_model_projection', false),
  projectionScale: hidden ** -0.5,
  norm: rmsNorm('model.per_layer_projection_norm', epsilon),
});

function differences(row: RowContext): Differences {
  const { fields, sizes } = row;
  // transformers makes the last layer one of full attention.
  const isSliding = readSlidingLayers(fields, sizes.layers, (layer) => (layer + 1) % 6 !== 0).with(-1, false);
  const global = globalSizes(row, isSliding);
  const sharedWith = sharedLayers(fields, isSliding);
  const window = fields.count('sliding_window');
  const epsilon = fields.number('rms_norm_eps');
  const isDouble = fields.flag('use_double_wide_mlp', false);
  const sameKeys = fields.flag('attention_k_eq_v', false);
  const width = tokenWidth(row);
  const mixture = experts(row);
  const layer = (index: number): LayerDifferences => ({
    window: isSliding[index] ? window : null,
    sharedWith: sharedWith(index),
    sizes: {
      ...(isSliding[index] ? {} : global),
      width: sizes.width * (isDouble && sharedWith(index) !== null ? 2 : 1),
    },
    ...(sameKeys && !isSliding[index] && { names: { value: 'self_attn.k_proj' } }),
    ...(mixture !== null && { beside: BESIDE }),
    parts: partsOf(`model.layers.${index}`, width, epsilon),
  });
  return {
    ...GEMMA_BLOCK,
    rotary: {
      ...ROTARY,
      layerType: 'full_attention',
      headSize: global.headSize,
      otherwise: GLOBAL_POSITIONS,
    },
    slidingRotary: { ...ROTARY, layerType: 'sliding_attention' },
    layer,
    experts: mixture,
    decoder: {
      embeddingScale: Math.sqrt(sizes.hidden),
      logitSoftCap: fields.optionalNumber('final_logit_softcapping'),
      ...(width > 0 && {
        tokenInputs: tokenInputs(sizes, { width, vocabulary: sizes.vocabulary }, epsilon),
      }),
    },
  };
}

const ROTARY = { thetaField: null, reads: 'rope_parameters', proportional: true } as const;
const GLOBAL_POSITIONS = { rope_type: 'proportional', partial_rotary_factor: 0.25, rope_theta: 1_000_000 };

export const GEMMA4_ROWS: readonly DecoderRow[] = [
  {
    modelTypes: ['gemma4_text'],
    within: ['gemma4'],
    defaults: {
      vocab_size: 262_144,
      hidden_size: 2304,
      intermediate_size: 9216,
      num_hidden_layers: 30,
      num_attention_heads: 8,
      num_key_value_heads: 4,
      head_dim: 256,
      max_position_embeddings: 131_072,
      rms_norm_eps: 1e-6,
      sliding_window: 512,
    },
    requires: {
      hidden_activation: ['gelu_pytorch_tanh'],
      attention_bias: [false],
      // Of models with images, where only tokens of an image attend to later ones.
      use_bidirectional_attention: ['vision'],
    },
    differences,
  },
];

import {
  projection,
  projectionAsStored,
  readActivation,
  readSlidingLayers,
  rmsNorm,
} from './common-fields.ts';
import type { ConfigFields } from './config-fields.ts';
import {
  type AttentionDesign,
  type DecoderDesign,
  type LayerDesign,
  type MlpDesign,
  type NormDesign,
  type ProjectionDesign,
  whole,
} from './decoder-design.ts';
import type { Family, TensorNames } from './family.ts';
import { readRotary } from './rotary.ts';

/** Llama and the families that differ from it in biases, windows and norms of heads. */

/** Sizes that every family of this layout has. */
export interface LlamaSizes {
  readonly vocabulary: number;
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headSize: number;
  readonly width: number;
  readonly positions: number;
  readonly epsilon: number;
}

/** How a family differs from Llama; absent = as Llama. */
export interface LlamaVariation {
  /** Whether query, key and value have a bias; absent = as attention_bias says. */
  readonly qkvBias?: boolean;
  readonly outputBias?: boolean;
  /** Norm of the queries and keys of each head. */
  readonly headNorms?: boolean;
  /** Which layers have the window of sliding_window. */
  readonly window?: 'none' | 'all' | 'by-layer';
  /** Changes one layer after it has been described. */
  readonly layer?: (layer: LayerDesign, index: number) => LayerDesign;
  /** Changes the whole design in the end. */
  readonly design?: (design: DecoderDesign) => DecoderDesign;
}

export const llamaNames = {
  embedding: 'model.embed_tokens.weight',
  finalNorm: 'model.norm',
  head: 'lm_head',
  layer: (index: number) => `model.layers.${index}`,
};

export function readLlamaSizes(fields: ConfigFields): LlamaSizes {
  const hidden = fields.count('hidden_size');
  const heads = fields.count('num_attention_heads');
  return {
    vocabulary: fields.count('vocab_size'),
    hidden,
    layers: fields.count('num_hidden_layers'),
    heads,
    kvHeads: fields.count('num_key_value_heads', heads),
    headSize: fields.count('head_dim', hidden / heads),
    width: fields.count('intermediate_size'),
    positions: fields.count('max_position_embeddings'),
    epsilon: fields.number('rms_norm_eps', 1e-6),
  };
}

/** Describes a decoder of Llama's layout. @throws ModelError */
export function llamaDesign(
  fields: ConfigFields,
  tensors: TensorNames,
  variation: LlamaVariation = {},
): DecoderDesign {
  const sizes = readLlamaSizes(fields);
  const windows = readWindows(fields, sizes.layers, variation.window ?? 'none');
  const { rotary, maxPositions } = readRotary(fields, sizes);
  const { layer: change = (layer: LayerDesign) => layer, design = (all: DecoderDesign) => all } = variation;
  const biases = readBiases(fields, variation);
  const layers = windows.map((window, index) => {
    const name = llamaNames.layer(index);
    const attention = { ...llamaAttention(name, sizes, biases), rotary, window };
    const norms = variation.headNorms ? headNorms(`${name}.self_attn`, sizes.epsilon) : {};
    const feedForward = llamaMlp(`${name}.mlp`, sizes.width, fields, tensors);
    return change(sequentialLayer(name, { ...attention, ...norms }, feedForward, sizes.epsilon), index);
  });
  return design({
    vocabulary: sizes.vocabulary,
    hidden: sizes.hidden,
    maxPositions,
    embedding: whole(llamaNames.embedding),
    embeddingScale: 1,
    embeddingNorm: null,
    embeddingProjection: null,
    learnedPositions: null,
    layers,
    finalNorm: rmsNorm(llamaNames.finalNorm, sizes.epsilon),
    head: readHead(fields, tensors, { embedding: llamaNames.embedding, head: llamaNames.head }),
    logitScale: 1,
    logitSoftCap: null,
  });
}

/** The head's own weight, or the embedding's if tie_word_embeddings says so. */
export function readHead(
  fields: ConfigFields,
  tensors: TensorNames,
  names: { readonly embedding: string; readonly head: string },
  tiedIfAbsent = false,
): ProjectionDesign {
  const tied = fields.flag('tie_word_embeddings', tiedIfAbsent);
  const bias = tensors.has(`${names.head}.bias`) ? whole(`${names.head}.bias`) : null;
  return { weight: whole(tied ? names.embedding : `${names.head}.weight`), bias };
}

interface Biases {
  readonly qkv: boolean;
  readonly output: boolean;
}

function readBiases(fields: ConfigFields, { qkvBias, outputBias }: LlamaVariation): Biases {
  if (qkvBias !== undefined) return { qkv: qkvBias, output: outputBias ?? qkvBias };
  const attention = fields.flag('attention_bias', false);
  return { qkv: attention, output: outputBias ?? attention };
}

function readWindows(
  fields: ConfigFields,
  layers: number,
  kind: 'none' | 'all' | 'by-layer',
): (number | null)[] {
  if (kind === 'none') return Array.from({ length: layers }, () => null);
  const window = fields.optionalCount('sliding_window');
  if (kind === 'all') return Array.from({ length: layers }, () => window);
  const used = fields.flag('use_sliding_window', false) && window !== null;
  const first = fields.number('max_window_layers', layers);
  const sliding = readSlidingLayers(fields, layers, (layer) => used && layer >= first);
  return sliding.map((one) => (one ? window : null));
}

export function llamaAttention(layer: string, sizes: LlamaSizes, biases: Biases): AttentionDesign {
  const name = `${layer}.self_attn`;
  const { heads, kvHeads, headSize } = sizes;
  return {
    ...{ heads, kvHeads, headSize },
    query: projection(`${name}.q_proj`, biases.qkv),
    key: projection(`${name}.k_proj`, biases.qkv),
    value: projection(`${name}.v_proj`, biases.qkv),
    output: projection(`${name}.o_proj`, biases.output),
    clip: null,
    queryNorm: null,
    keyNorm: null,
    normPlace: 'before-rotary',
    scale: 1 / Math.sqrt(headSize),
    window: null,
    softCap: null,
    sinks: null,
    rotary: null,
    slopes: null,
  };
}

/** q_norm and k_norm over each head. */
export function headNorms(
  name: string,
  epsilon: number,
  weightOffset: 0 | 1 = 0,
): Pick<AttentionDesign, 'queryNorm' | 'keyNorm'> {
  const norm = (of: string) => ({
    ...rmsNorm(`${name}.${of}`, epsilon, weightOffset),
    over: 'head' as const,
  });
  return { queryNorm: norm('q_norm'), keyNorm: norm('k_norm') };
}

export function llamaMlp(name: string, width: number, fields: ConfigFields, tensors: TensorNames): MlpDesign {
  fields.ignore('mlp_bias');
  return {
    kind: 'mlp',
    width,
    gate: projectionAsStored(`${name}.gate_proj`, tensors),
    up: projectionAsStored(`${name}.up_proj`, tensors),
    down: projectionAsStored(`${name}.down_proj`, tensors),
    activation: readActivation(fields),
  };
}

/** Norm before attention and before the MLP, one after the other. */
export function sequentialLayer(
  name: string,
  attention: AttentionDesign,
  feedForward: LayerDesign['feedForward'],
  epsilon: number,
): LayerDesign {
  return {
    attention,
    feedForward,
    residual: 'sequential',
    attentionNorm: rmsNorm(`${name}.input_layernorm`, epsilon),
    feedForwardNorm: rmsNorm(`${name}.post_attention_layernorm`, epsilon),
    ...NO_LATER_NORMS,
    residualScale: 1,
  };
}

export const NO_LATER_NORMS: Readonly<
  Record<
    'attentionOutputNorm' | 'feedForwardOutputNorm' | 'afterAttentionNorm' | 'afterFeedForwardNorm',
    NormDesign | null
  >
> = {
  attentionOutputNorm: null,
  feedForwardOutputNorm: null,
  afterAttentionNorm: null,
  afterFeedForwardNorm: null,
};

export const LLAMA_FAMILIES: readonly Family[] = [
  { modelTypes: ['llama'], design: (fields, tensors) => llamaDesign(fields, tensors) },
  {
    modelTypes: ['mistral'],
    design: (fields, tensors) => llamaDesign(fields, tensors, { window: 'all' }),
  },
  {
    modelTypes: ['qwen2'],
    design: (fields, tensors) =>
      llamaDesign(fields, tensors, { qkvBias: true, outputBias: false, window: 'by-layer' }),
  },
  {
    modelTypes: ['qwen3'],
    design: (fields, tensors) => llamaDesign(fields, tensors, { headNorms: true, window: 'by-layer' }),
  },
];

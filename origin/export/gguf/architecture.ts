import type { GgufKeys } from './gguf-keys.ts';

/** The tensors of a file, for what only they show. Names are llama.cpp's. */
export interface StoredTensors {
  has(name: string): boolean;
  /** Outermost dimension first. @throws ModelError if there is no such tensor */
  shape(name: string): readonly number[];
  /** The values of a small tensor, or null if there is none. */
  values(name: string): number[] | null;
}

/**
 * One of llama.cpp's architectures: what its converter makes of a model, so that it can be undone. The names
 * of the tensors are those of the design that the configuration describes.
 */
export interface Architecture {
  /** Value of `general.architecture`. */
  readonly name: string;
  /** Fields of config.json; the loader adds vocab_size and tie_word_embeddings. @throws ModelError */
  readonly config: (keys: GgufKeys, tensors: StoredTensors) => Readonly<Record<string, unknown>>;
  /** Places (`convertedTensors`) of tensors that have another name in this architecture. */
  readonly renamed?: (tensors: StoredTensors) => Readonly<Record<string, string>>;
  /** Queries and keys have the rotated pairs side by side instead of in two halves. */
  readonly pairs?: boolean;
  readonly moved?: (keys: GgufKeys) => readonly Moved[];
  /** Keys that have a scalar of each layer in place of a tensor. */
  readonly scalars?: readonly string[];
}

/** A tensor of Hugging Face whose rows or columns the converter has moved, or divided between tensors. */
export interface Moved {
  /** llama.cpp's tensors. The place of the first one is that of the result. */
  readonly from: readonly string[];
  /** True for sources whose matrices are stored transposed. */
  readonly turned?: readonly boolean[];
  /** Rows of each source to the place of each row of the result; absent = in place. @throws ModelError */
  readonly rows?: (counts: readonly number[]) => RowOrder;
  /** Columns of the source to the place of each column of the result. @throws ModelError */
  readonly columns?: (counts: readonly number[]) => RowOrder;
  /** True if a stack of matrices is one matrix in Hugging Face's file. */
  readonly flat?: boolean;
}

/** Where a row of the result comes from. */
export type RowOrder = (row: number) => { readonly source: number; readonly row: number };

/** Tensors that only the configuration needs. */
export const CONFIG_TENSORS: ReadonlySet<string> = new Set([
  'rope_freqs',
  'rope_factors_long',
  'rope_factors_short',
  'attn_rot_embd',
]);

/** Keys without effect on logits. */
export const NEUTRAL_KEYS = ['vocab_size', 'rope.scaling.finetuned', 'tensor_data_layout', 'pooling_type'];

export const headSizeOf = (keys: GgufKeys): number =>
  keys.number('attention.key_length', keys.number('embedding_length') / keys.number('attention.head_count'));

/** Sizes that most architectures have, with their names in llama.cpp. */
export function readSizes(keys: GgufKeys) {
  const hidden = keys.number('embedding_length');
  const heads = keys.number('attention.head_count');
  const headSize = headSizeOf(keys);
  if (keys.number('attention.value_length', headSize) !== headSize) {
    throw keys.fault('attention.value_length', `equal to attention.key_length, ${headSize}`);
  }
  return {
    hidden,
    heads,
    kvHeads: keys.numberOfLayers('attention.head_count_kv', heads),
    headSize,
    layers: keys.number('block_count'),
    // Files of models without a dense layer may lack it.
    width: keys.number('feed_forward_length', keys.optionalNumber('expert_feed_forward_length') ?? undefined),
    positions: keys.number('context_length'),
  };
}

/** The configuration of most architectures. */
export function llamaConfig(modelType: string, keys: GgufKeys, tensors: StoredTensors) {
  const { hidden, heads, kvHeads, headSize, layers, width, positions } = readSizes(keys);
  const layerEpsilon = 'attention.layer_norm_epsilon';
  return {
    model_type: modelType,
    hidden_size: hidden,
    num_attention_heads: heads,
    num_key_value_heads: kvHeads,
    head_dim: headSize,
    num_hidden_layers: layers,
    intermediate_size: width,
    max_position_embeddings: positions,
    ...(keys.has('attention.layer_norm_rms_epsilon')
      ? { rms_norm_eps: keys.number('attention.layer_norm_rms_epsilon') }
      : { layer_norm_eps: keys.number(layerEpsilon) }),
    ...readRope(keys, tensors, { headSize, positions }),
  };
}

/** rope_theta, partial_rotary_factor and rope_scaling. @throws ModelError */
export function readRope(
  keys: GgufKeys,
  tensors: StoredTensors,
  { headSize, positions }: { headSize: number; positions: number },
) {
  const rotated = keys.number('rope.dimension_count', headSize);
  const scaling = readScaling(keys, tensors, positions);
  return {
    rope_theta: keys.number('rope.freq_base', 10_000),
    ...(rotated === headSize ? {} : { partial_rotary_factor: rotated / headSize }),
    ...(scaling === null ? {} : { rope_scaling: scaling }),
  };
}

function readScaling(keys: GgufKeys, tensors: StoredTensors, positions: number) {
  const type = keys.text('rope.scaling.type', 'none');
  const factor = keys.number('rope.scaling.factor', keys.number('rope.scale_linear', 1));
  const original = keys.number('rope.scaling.original_context_length', positions);
  const attentionFactor = keys.number('rope.scaling.attn_factor', 1);
  const divisors = tensors.values('rope_freqs.weight');
  const long = tensors.values('rope_factors_long.weight');
  const short = tensors.values('rope_factors_short.weight') ?? divisors;
  if (short !== null) {
    // Divisors of the frequencies are what longrope has. Llama 3's scaling is stored so: the same ones for
    // all lengths.
    return {
      rope_type: 'longrope',
      short_factor: short,
      long_factor: long ?? short,
      attention_factor: attentionFactor,
      original_max_position_embeddings: original,
    };
  }
  if (type === 'yarn') return { rope_type: 'yarn', factor, ...readYarn(keys, original) };
  if (type !== 'none' && type !== 'linear') throw keys.fault('rope.scaling.type', 'none, linear or yarn');
  return factor === 1 ? null : { rope_type: 'linear', factor };
}

function readYarn(keys: GgufKeys, original: number) {
  const optional = (field: string, key: string) =>
    keys.has(key) ? { [field]: keys.number(key) } : ({} as Record<string, number>);
  if (keys.number('rope.scaling.yarn_ext_factor', 1) !== 1) {
    throw keys.fault('rope.scaling.yarn_ext_factor', '1');
  }
  return {
    original_max_position_embeddings: original,
    ...optional('attention_factor', 'rope.scaling.yarn_attn_factor'),
    ...optional('beta_fast', 'rope.scaling.yarn_beta_fast'),
    ...optional('beta_slow', 'rope.scaling.yarn_beta_slow'),
  };
}

export const anyLayerHas = (keys: GgufKeys, tensors: StoredTensors, name: string): boolean =>
  Array.from({ length: keys.number('block_count') }, (_, layer) => `blk.${layer}.${name}`).some(tensors.has);

/** layer_types by the flags of a pattern; `absent` tells the windows if the file has no pattern. */
export function layerTypes(keys: GgufKeys, absent: (layer: number) => boolean): string[] {
  const flags = keys.list('attention.sliding_window_pattern');
  return Array.from({ length: keys.number('block_count') }, (_, layer) =>
    (flags === null ? absent(layer) : flags[layer] === 1) ? 'sliding_attention' : 'full_attention',
  );
}

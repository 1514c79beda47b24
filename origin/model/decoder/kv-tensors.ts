import { type DecoderNames, isLayerName, layerName } from '../config/decoder-names.ts';
import type { ModelConfig } from '../config/model-config.ts';
import { ElementType, type GraphNode, type GraphTensor } from '../onnx/onnx-graph.ts';
import { stateLayers } from './state-tensors.ts';

/** The KV cache of a decoder, as the inputs and outputs of its graph. */

/** Bytes of one element by the types that GroupQueryAttention has for its cache. */
export const KV_BYTES = { float32: 4, float16: 2, bfloat16: 2, int8: 1, float8e4m3fn: 1 } as const;
export type KvType = keyof typeof KV_BYTES;
const KV_TYPES = new Map<number, KvType>(
  (Object.keys(KV_BYTES) as KvType[]).map((type) => [ElementType[type], type]),
);

/** Keys or values of one layer. */
export interface KvTensor {
  readonly past: string;
  readonly present: string;
  /** Outputs of layers that read this tensor and have none of their own: the same memory. */
  readonly shared: readonly string[];
  readonly heads: number;
  readonly headSize: number;
}

interface DecoderTensors {
  readonly inputs: ReadonlyMap<string, GraphTensor>;
  readonly outputs: ReadonlyMap<string, GraphTensor>;
  readonly attentions: readonly GraphNode[];
}

/** Place of the past keys among the inputs of GroupQueryAttention. */
const PAST_KEY_INPUT = 3;

/** Layers that read the KV of an earlier one have none. */
export const hasKv = ({ inputs }: GraphNode, { outputs }: DecoderTensors): boolean =>
  !outputs.has(inputs[PAST_KEY_INPUT] ?? '');

export const isPast = (name: string, { pastKey, pastValue }: DecoderNames): boolean =>
  isLayerName(pastKey, name) || isLayerName(pastValue, name);

/** The outputs of an attention that are bound to a tensor which it reads. */
const sharedOutputs = ({ inputs, outputs }: GraphNode, present: string): string[] =>
  [PAST_KEY_INPUT, PAST_KEY_INPUT + 1].flatMap((place) =>
    inputs[place] === present ? (outputs[place - PAST_KEY_INPUT + 1] ?? []) : [],
  );

/** Returns the keys and values of each layer with attention. @throws Error that completes "model.onnx …" */
export function kvTensors(
  layers: number,
  { inputs, outputs, attentions }: DecoderTensors,
  names: DecoderNames,
  config: ModelConfig,
): KvTensor[] {
  const kv: KvTensor[] = [];
  const withState = stateLayers(inputs);
  for (let layer = 0; layer < layers; layer++) {
    if (withState.includes(layer) && !inputs.has(layerName(names.pastKey, layer))) continue;
    const templates = [
      [names.pastKey, names.presentKey],
      [names.pastValue, names.presentValue],
    ] as const;
    for (const [pastTemplate, presentTemplate] of templates) {
      const past = layerName(pastTemplate, layer);
      const present = layerName(presentTemplate, layer);
      const input = inputs.get(past);
      if (input === undefined) throw new Error(`lacks the input ${past}`);
      if (!outputs.has(present)) throw new Error(`lacks the output ${present}`);
      const shared = attentions.flatMap((node) => sharedOutputs(node, present));
      kv.push({ past, present, shared, ...kvSizes(input, config) });
    }
  }
  const surplus = [...inputs.keys()].filter(
    (name) => isPast(name, names) && !kv.some(({ past }) => past === name),
  );
  if (surplus.length > 0)
    throw new Error(`has past inputs beyond its ${layers} layers: ${surplus.join(', ')}`);
  return kv;
}

/**
 * Requires that a KV tensor is [batch, heads, positions, headSize]. onnxruntime-genai's builder writes
 * headSize as the symbol kv_cache_dim since 0.15; it is then the configuration's.
 */
function kvSizes(
  { name, dimensions }: GraphTensor,
  config: ModelConfig,
): Pick<KvTensor, 'heads' | 'headSize'> {
  const [, heads, , lastDimension] = dimensions;
  const headSize = typeof lastDimension === 'string' ? configuredHeadSize(name, config) : lastDimension;
  if (dimensions.length === 4 && typeof heads === 'number' && typeof headSize === 'number')
    return { heads, headSize };
  throw new Error(
    `has an input ${name} that is not [batch, KV heads, positions, head size] with fixed sizes`,
  );
}

/**
 * Requires that all KV tensors are of one type.
 * @param mayDiffer whether layers may have shapes of their own
 * @throws Error that completes "model.onnx …"
 */
export function kvShape(
  kv: readonly KvTensor[],
  inputs: ReadonlyMap<string, GraphTensor>,
  mayDiffer: boolean,
): { readonly kvHeads: number; readonly headSize: number; readonly kvType: KvType } {
  const types = kv.map(({ past }) => {
    const type = KV_TYPES.get(inputs.get(past)!.elementType);
    if (type !== undefined) return type;
    throw new Error(`has an input ${past} that is none of ${Object.keys(KV_BYTES).join(', ')}`);
  });
  const [first] = kv;
  if (first === undefined) return { kvHeads: 0, headSize: 0, kvType: 'float32' };
  const { heads: kvHeads, headSize } = first;
  const sameShape = (a: KvTensor, b: KvTensor) => a.heads === b.heads && a.headSize === b.headSize;
  const different = kv.find((tensor, index) => {
    // The values of a layer follow its keys.
    const expected = mayDiffer ? [first, kv[index ^ 1]!] : [first];
    return types[index] !== types[0] || !expected.some((like) => sameShape(tensor, like));
  });
  if (different === undefined) return { kvHeads, headSize, kvType: types[0]! };
  const why =
    different.headSize === headSize
      ? ''
      : `; head sizes ${headSize} and ${different.headSize} in one model, as in multi-head latent attention (DeepSeek) or Gemma 4, are not supported: build it from its published weights`;
  throw new Error(`has KV inputs of different shapes or types: ${first.past}, ${different.past}${why}`);
}

function configuredHeadSize(past: string, { headSize, source }: ModelConfig): number {
  if (headSize !== null) return headSize;
  throw new Error(
    `has an input ${past} without a head size, and ${source} has neither head_dim nor hidden_size; add head_dim`,
  );
}

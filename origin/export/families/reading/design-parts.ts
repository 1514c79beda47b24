import { ModelError } from '@continuo/origin/model/config/model-json.ts';
import type { Activation, MlpDesign } from '../../design/feed-forward-design.ts';
import { type NormDesign, type ProjectionDesign, type RowRange, whole } from '../../design/weight-design.ts';
import type { ConfigFields } from './config-fields.ts';

/** The fields of config.json that many families share. */

const ACTIVATIONS: Readonly<Record<string, Activation>> = {
  silu: 'silu',
  swish: 'silu',
  gelu: 'gelu',
  gelu_python: 'gelu',
  gelu_new: 'gelu-tanh',
  gelu_fast: 'gelu-tanh',
  gelu_accurate: 'gelu-tanh',
  gelu_pytorch_tanh: 'gelu-tanh',
  quick_gelu: 'gelu-sigmoid',
  relu: 'relu',
  relu2: 'relu-squared',
};

export const readActivation = (fields: ConfigFields, name = 'hidden_act', absent?: string): Activation =>
  fields.choice(name, ACTIVATIONS, absent);

/** Names of a layer's activation, gated or not. */
export const activationNames = ({ activation, gate }: MlpDesign): string[] => [
  ...Object.keys(ACTIVATIONS).filter((name) => ACTIVATIONS[name] === activation),
  ...(activation === 'silu' && gate !== null ? ['swiglu'] : []),
  ...(typeof activation === 'object' ? [activation.kind] : []),
];

/** Weight and optional bias under `name`. */
export const projection = (name: string, bias: boolean): ProjectionDesign => ({
  weight: whole(`${name}.weight`),
  bias: bias ? whole(`${name}.bias`) : null,
});

/** `count` rows of each of `groups` groups of `size` rows, from the row `offset` of a group on. */
export const interleaved = (groups: number, size: number, offset: number, count: number): RowRange[] =>
  Array.from({ length: groups }, (_, group) => ({ first: group * size + offset, count }));

/** A projection to some of another's outputs. */
export const chosenRows = (
  { weight, bias }: ProjectionDesign,
  rows: readonly RowRange[],
): ProjectionDesign => ({
  weight: weight.map((part) => ({ ...part, rows })),
  bias: bias === null ? null : bias.map((part) => ({ ...part, rows })),
});

export const layerNorm = (name: string, epsilon: number, bias = true): NormDesign => ({
  kind: 'layer',
  epsilon,
  weight: whole(`${name}.weight`),
  bias: bias ? whole(`${name}.bias`) : null,
  weightOffset: 0,
});

export const rmsNorm = (name: string, epsilon: number): NormDesign => ({
  ...layerNorm(name, epsilon, false),
  kind: 'rms',
});

/** Granite 4 writes attention for full attention. */
const ATTENTION_TYPES: readonly string[] = ['full_attention', 'sliding_attention', 'attention'];

/** For each layer, whether it attends to a window: from layer_types, which transformers writes since 4.53. */
export function readSlidingLayers(
  fields: ConfigFields,
  layers: number,
  absent: (layer: number) => boolean,
): boolean[] {
  const types = readLayerTypes(fields, layers, ATTENTION_TYPES);
  return Array.from({ length: layers }, (_, layer) =>
    types === null ? absent(layer) : types[layer] === 'sliding_attention',
  );
}

/** The type of each layer in layer_types; null if the field is absent. @throws ModelError for other types */
export function readLayerTypes(
  fields: ConfigFields,
  layers: number,
  supported: readonly string[],
): readonly string[] | null {
  if (!fields.has('layer_types')) return null;
  const types = fields.texts('layer_types');
  const unknown = types.find((type) => !supported.includes(type));
  if (unknown !== undefined)
    throw new ModelError(`config.json: layer_types has ${unknown}; supported are ${supported.join(', ')}`);
  if (types.length === layers) return types;
  throw fields.fault('layer_types', `${layers} types`);
}

const FULL = 'full_attention';

/**
 * For each layer, whether it attends: from layer_types, else as `absent` says.
 * @param notAttending the type of layers that do not
 * @throws ModelError if none attends
 */
export function readAttendingLayers(
  fields: ConfigFields,
  layers: number,
  notAttending: string,
  absent: (layer: number) => boolean,
): readonly boolean[] {
  const types = readLayerTypes(fields, layers, [FULL, notAttending]);
  const attends = Array.from({ length: layers }, (_, layer) =>
    types === null ? absent(layer) : types[layer] === FULL,
  );
  if (attends.includes(true)) return attends;
  throw fields.fault('layer_types', `a layer of ${FULL}`);
}

/** Positions that a convolution reads. A window of no positions is no state. */
export function kernelLength(fields: ConfigFields, name: string, absent = 4): number {
  const length = fields.count(name, absent);
  if (length < 2) throw fields.fault(name, 'at least 2');
  return length;
}

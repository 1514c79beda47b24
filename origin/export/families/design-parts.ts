import type { ConfigFields } from './config-fields.ts';
import { type Activation, type NormDesign, type ProjectionDesign, whole } from './decoder-design.ts';

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

/** Weight and optional bias under `name`. */
export const projection = (name: string, bias: boolean): ProjectionDesign => ({
  weight: whole(`${name}.weight`),
  bias: bias ? whole(`${name}.bias`) : null,
});

export const layerNorm = (name: string, epsilon: number, bias = true): NormDesign => ({
  kind: 'layer',
  epsilon,
  weight: whole(`${name}.weight`),
  bias: bias ? whole(`${name}.bias`) : null,
  weightOffset: 0,
});

/** For each layer, whether it attends to a window: from layer_types, which transformers writes since 4.53. */
export function readSlidingLayers(
  fields: ConfigFields,
  layers: number,
  absent: (layer: number) => boolean,
): boolean[] {
  if (!fields.has('layer_types')) return Array.from({ length: layers }, (_, layer) => absent(layer));
  const types = fields.texts('layer_types');
  const known = types.every((type) => type === 'full_attention' || type === 'sliding_attention');
  if (known && types.length === layers) return types.map((type) => type === 'sliding_attention');
  throw fields.fault('layer_types', `full_attention or sliding_attention for each of ${layers} layers`);
}

import type { ConfigFields } from './config-fields.ts';
import { kernelLength, rmsNorm } from './design-parts.ts';
import type { StateSpaceDesign } from './mixer-design.ts';
import { type ProjectionDesign, type Weight, whole } from './weight-design.ts';

/** Sizes and flags of all state-space layers (Mamba 2) of a model. */
export interface StateSpaceSizes {
  readonly heads: number;
  readonly valueSize: number;
  readonly keyHeads: number;
  readonly keySize: number;
  /** Positions of the convolution. */
  readonly length: number;
  readonly kernelBias: boolean;
  readonly inputBias: boolean;
  readonly outputBias: boolean;
  readonly stepLimits: readonly [min: number, max: number];
  readonly epsilon: number;
}

/** The fields of Bamba, Granite 4 and Falcon H1. @throws ModelError */
export function readMambaFields(
  fields: ConfigFields,
  hidden: number,
  epsilon: number,
  given: number | null = null,
): StateSpaceSizes {
  const heads = fields.count('mamba_n_heads', 128);
  const expanded = fields.count('mamba_expand', 2) * hidden;
  const width = given ?? expanded;
  if (width % heads !== 0) throw fields.fault('mamba_n_heads', `a divisor of the width ${width}`);
  fields.require('mamba_d_head', width / heads, ...AUTOMATIC);
  const bias = fields.flag('mamba_proj_bias', false);
  const keyHeads = fields.count('mamba_n_groups', 1);
  if (heads % keyHeads !== 0) throw fields.fault('mamba_n_groups', `a divisor of the ${heads} heads`);
  return {
    heads,
    valueSize: width / heads,
    keyHeads,
    keySize: fields.count('mamba_d_state', 256),
    length: kernelLength(fields, 'mamba_d_conv'),
    kernelBias: fields.flag('mamba_conv_bias', true),
    inputBias: bias,
    outputBias: bias,
    stepLimits: readStepLimits(fields, 'time_step_limit'),
    epsilon,
  };
}

const AUTOMATIC = ['auto'];

/** Infinity as transformers 5 writes it. */
const ENDLESS = 'Infinity';

/** The least and the largest step: two numbers. @throws ModelError */
export function readStepLimits(fields: ConfigFields, name: string): readonly [min: number, max: number] {
  const value = fields.value(name);
  if (value === undefined) return [0, Infinity];
  const [min, max, ...others] = Array.isArray(value) ? value.map(numberOf) : [];
  if (typeof min === 'number' && typeof max === 'number' && min <= max && others.length === 0) {
    return [min, max];
  }
  throw fields.fault(name, 'two numbers, the smaller one first');
}

function numberOf(value: unknown): unknown {
  const written = typeof value === 'object' && value !== null && '__float__' in value && value.__float__;
  return written === ENDLESS ? Infinity : value;
}

/** @param name of the layer's tensors, such as `model.layers.0.mamba` */
export function describeStateSpace(name: string, sizes: StateSpaceSizes): StateSpaceDesign {
  const { heads, valueSize, keyHeads, keySize, length, kernelBias, inputBias, outputBias } = sizes;
  const [width, keys] = [heads * valueSize, keyHeads * keySize];
  const rows = (first: number, count: number): ProjectionDesign => ({
    weight: [{ tensor: `${name}.in_proj.weight`, rows: [{ first, count }] }],
    bias: inputBias ? [{ tensor: `${name}.in_proj.bias`, rows: [{ first, count }] }] : null,
  });
  const vector = (of: string): Weight => whole(`${name}.${of}`);
  return {
    kind: 'state-space',
    heads,
    valueSize,
    keyHeads,
    keySize,
    input: rows(0, 2 * width + 2 * keys),
    step: rows(2 * width + 2 * keys, heads),
    stepBias: vector('dt_bias'),
    stepLimits: sizes.stepLimits,
    logDecay: vector('A_log'),
    skip: vector('D'),
    kernel: { length, weight: vector('conv1d.weight'), bias: kernelBias ? vector('conv1d.bias') : null },
    norm: rmsNorm(`${name}.norm`, sizes.epsilon),
    normPlace: 'after-gate',
    output: { weight: vector('out_proj.weight'), bias: outputBias ? vector('out_proj.bias') : null },
    multipliers: null,
  };
}

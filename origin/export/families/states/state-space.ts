import type { StateSpaceDesign } from '../../design/mixer-design.ts';
import { type ProjectionDesign, type Weight, whole } from '../../design/weight-design.ts';
import type { ConfigFields } from '../reading/config-fields.ts';
import { kernelLength, rmsNorm } from '../reading/design-parts.ts';

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

type Counted = readonly [name: string, absent: number];

/** The names that a family gives the fields of its state spaces. */
export interface StateSpaceFields {
  readonly heads: Counted;
  /** The values of a head. */
  readonly valueSize: string;
  readonly keyHeads: Counted;
  readonly keySize: Counted;
  readonly length: string;
  /** Null = there is always one. */
  readonly kernelBias: string | null;
  readonly bias: string;
  /** Both limits, or the lower one where transformers reads no other. */
  readonly stepLimits: 'time_step_limit' | 'time_step_min';
}

/**
 * @param width of all heads together; null = only the field of a head's values says it
 * @param words that the field of a head's values may have in place of a number
 * @throws ModelError
 */
export function readStateSpace(
  fields: ConfigFields,
  names: StateSpaceFields,
  { width, epsilon, words = [] }: { width: number | null; epsilon: number; words?: readonly string[] },
): StateSpaceSizes {
  const heads = fields.count(...names.heads);
  if (width !== null && width % heads !== 0)
    throw fields.fault(names.heads[0], `a divisor of the width ${width}`);
  if (width !== null) fields.require(names.valueSize, width / heads, ...words);
  const keyHeads = fields.count(...names.keyHeads);
  if (heads % keyHeads !== 0) throw fields.fault(names.keyHeads[0], `a divisor of the ${heads} heads`);
  const bias = fields.flag(names.bias, false);
  return {
    heads,
    valueSize: width === null ? fields.count(names.valueSize) : width / heads,
    keyHeads,
    keySize: fields.count(...names.keySize),
    length: kernelLength(fields, names.length),
    kernelBias: names.kernelBias === null || fields.flag(names.kernelBias, true),
    inputBias: bias,
    outputBias: bias,
    stepLimits:
      names.stepLimits === 'time_step_limit'
        ? readStepLimits(fields, names.stepLimits)
        : [fields.number(names.stepLimits, 0.001), Infinity],
    epsilon,
  };
}

/** Infinity as transformers 5 writes it. */
const ENDLESS = 'Infinity';

/** The least and the largest step: two numbers. @throws ModelError */
function readStepLimits(fields: ConfigFields, name: string): readonly [min: number, max: number] {
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

import { ModelError } from '@continuo/origin/model/config/model-json.ts';
import type { RotaryDesign } from '../../design/mixer-design.ts';
import { ConfigFields } from './config-fields.ts';

/** Rotary positions as transformers' modeling_rope_utils computes them, in single precision. */

export interface RotaryOptions {
  readonly headSize: number;
  /** max_position_embeddings */
  readonly positions: number;
  /** Base of the frequencies if config.json has none; absent = 10,000. */
  readonly theta?: number;
  /** Share of the head that is rotated if config.json has none; absent = the whole head, no field read. */
  readonly partial?: number;
  /** Field of the share beside rope_parameters; absent = partial_rotary_factor, null = none. */
  readonly partialField?: string | null;
  readonly interleaved?: boolean;
  /** Key of rope_parameters, if they differ by layer type: `full_attention` or `sliding_attention`. */
  readonly layerType?: string;
  /** Field of the base beside rope_parameters; absent = rope_theta, null = none is read. */
  readonly thetaField?: string | null;
  /** True if short_mscale of a scaling is the factor of cosine and sine (Phi 3.5 MoE). */
  readonly shortScale?: boolean;
  /** True if `alpha` of dynamic scaling makes the base larger at every length (HunYuan). */
  readonly growing?: boolean;
  /** True if the type may be proportional: some pairs rotate, by the frequencies of the whole head. */
  readonly proportional?: boolean;
  /** rope_scaling if config.json has neither object. */
  readonly otherwise?: Readonly<Record<string, unknown>>;
  /** Objects that are read; absent = rope_parameters, or the older rope_scaling. */
  readonly reads?: 'rope_parameters' | 'nothing';
}

interface RotaryPositions {
  readonly rotary: RotaryDesign;
  /** Positions for which the frequencies hold: other ones follow for dynamic and longrope scaling. */
  readonly maxPositions: number;
}

interface Scaling extends RotaryOptions {
  /** rope_parameters or rope_scaling; null = not scaled. */
  readonly parameters: ConfigFields | null;
  readonly fields: ConfigFields;
  readonly base: number;
  /** Rotated dimensions. */
  readonly dimensions: number;
}

interface Scaled {
  /** Absent = as without scaling. */
  readonly base?: number;
  readonly frequencies: readonly number[];
  readonly magnitude?: number;
  readonly maxPositions?: number;
}

/** Reads rope_parameters (transformers 5), or rope_theta and rope_scaling. @throws ModelError */
export function readRotary(fields: ConfigFields, options: RotaryOptions): RotaryPositions {
  const { positions, headSize, theta = 10_000, thetaField = 'rope_theta' } = options;
  const { partial, partialField = 'partial_rotary_factor', interleaved = false } = options;
  const parameters = readParameters(fields, options);
  const base = eitherNumber(fields, parameters, 'rope_theta', thetaField) ?? theta;
  const share =
    partial === undefined
      ? 1
      : (eitherNumber(fields, parameters, 'partial_rotary_factor', partialField) ?? partial);
  const dimensions = Math.floor(headSize * share + 1e-6);
  if (partial === undefined && rotaryType(parameters, options) !== 'proportional')
    parameters?.require('partial_rotary_factor', 1);
  if (partial !== undefined && dimensions % 2 !== 0)
    throw new ModelError(
      `config.json: positions rotate ${dimensions} of ${headSize} dimensions of a head; supported is an even number`,
    );
  const scaling = { ...options, fields, base, dimensions, parameters };
  const { magnitude = 1, maxPositions = positions, ...scaled } = scale(scaling);
  const isScaled = options.shortScale === true && rotaryType(parameters, options) !== 'default';
  const factor = isScaled ? parameters!.number('short_mscale') : magnitude;
  return { rotary: { base, magnitude: factor, interleaved, ...scaled }, maxPositions };
}

/** The object of these layers; null = there is none. */
function readParameters(fields: ConfigFields, options: RotaryOptions): ConfigFields | null {
  const { layerType, reads, otherwise } = options;
  if (reads === 'nothing') return null;
  const all = fields.inner('rope_parameters');
  if (all !== null) {
    const parameters = layerType === undefined ? all : all.inner(layerType);
    // Versions of transformers disagree about one object for layers of several types, and about two objects.
    if (parameters === null) throw all.fault(layerType!, 'an object');
    if (reads === undefined) fields.require('rope_scaling', fields.value('rope_parameters'));
    return parameters;
  }
  const isScaled = reads === undefined && layerType !== 'sliding_attention';
  const given = isScaled ? fields.inner('rope_scaling') : null;
  return given ?? (otherwise === undefined ? null : new ConfigFields(otherwise, 'rope_scaling.'));
}

/** A number that can stand in two places, which must agree. */
function eitherNumber(
  fields: ConfigFields,
  parameters: ConfigFields | null,
  inner: string,
  outer: string | null,
): number | null {
  const given = parameters?.optionalNumber(inner) ?? null;
  if (outer === null) return given;
  if (given !== null) fields.require(outer, given);
  return given ?? fields.optionalNumber(outer);
}

function scale(scaling: Scaling): Scaled {
  const { parameters } = scaling;
  if (parameters === null) return { frequencies: frequenciesOf(scaling) };
  const type = rotaryType(parameters, scaling);
  parameters.require('type', type);
  return KINDS[type]!(scaling, parameters);
}

/** @throws ModelError for an unknown type */
function rotaryType(parameters: ConfigFields | null, options: RotaryOptions): string {
  const { layerType, proportional = false } = options;
  if (parameters === null) return 'default';
  const name = layerType !== undefined || parameters.has('rope_type') ? 'rope_type' : 'type';
  parameters.choice(name, proportional ? KINDS : OTHER_KINDS, 'default');
  return parameters.text(name, 'default');
}

const KINDS: Readonly<Record<string, (scaling: Scaling, parameters: ConfigFields) => Scaled>> = {
  default: (scaling) => ({ frequencies: frequenciesOf(scaling) }),
  linear: (scaling, parameters) => {
    const factor = parameters.number('factor');
    return { frequencies: frequenciesOf(scaling).map((frequency) => Math.fround(frequency / factor)) };
  },
  /** The base grows with sequences beyond the original length, but keys of a cached prefix keep theirs. */
  dynamic: (scaling, parameters) => {
    parameters.ignore('factor', 'finetuned', 'beta_fast', 'beta_slow', 'mscale', 'mscale_all_dim');
    const maxPositions = parameters.count('original_max_position_embeddings', scaling.positions);
    const { base, dimensions, growing = false } = scaling;
    if (!growing) parameters.require('alpha', 1);
    const grown = base * parameters.number('alpha', 1) ** (dimensions / (dimensions - 2));
    return { base: grown, frequencies: frequenciesOf({ ...scaling, base: grown }), maxPositions };
  },
  /** Pairs that are not rotated have the frequency 0. */
  proportional: (scaling, parameters) => {
    const rotated = Math.floor((parameters.number('partial_rotary_factor', 1) * scaling.headSize) / 2);
    const factor = parameters.number('factor', 1);
    const frequencies = frequenciesOf(scaling).map((frequency, pair) =>
      pair < rotated ? Math.fround(frequency / factor) : 0,
    );
    return { frequencies };
  },
  llama3,
  yarn,
  longrope,
  su: longrope,
};

const { proportional: _, ...OTHER_KINDS } = KINDS;

/** baseⁱ: powers of the base for each pair. */
const powersOf = ({ base, dimensions }: Scaling): number[] =>
  Array.from({ length: dimensions / 2 }, (_, pair) =>
    Math.fround(base ** Math.fround((2 * pair) / dimensions)),
  );

const frequenciesOf = (scaling: Scaling): number[] =>
  powersOf(scaling).map((power) => Math.fround(1 / power));

function llama3(scaling: Scaling, parameters: ConfigFields): Scaled {
  const factor = parameters.number('factor');
  const low = parameters.number('low_freq_factor');
  const high = parameters.number('high_freq_factor');
  if (low <= 0 || low > high) throw parameters.fault('low_freq_factor', `above 0 and at most ${high}`);
  const original = originalPositions(scaling, parameters);
  const frequencies = frequenciesOf(scaling).map((frequency) => {
    const turns = (original * frequency) / (2 * Math.PI);
    if (turns < low) return frequency / factor;
    if (turns >= high) return frequency;
    const smooth = (turns - low) / (high - low);
    return ((1 - smooth) * frequency) / factor + smooth * frequency;
  });
  return { frequencies: frequencies.map(Math.fround) };
}

export const yarnMagnitude = (factor: number, share = 1): number =>
  factor <= 1 ? 1 : 0.1 * share * Math.log(factor) + 1;

/**
 * Positions before the scaling. Phi 3 has them beside the other parameters; there they outrank those among
 * them, unless these are of one layer type.
 */
function originalPositions({ fields, positions, layerType }: Scaling, parameters: ConfigFields): number {
  const name = 'original_max_position_embeddings';
  const inner = parameters.count(name, positions);
  if (layerType !== undefined) fields.require(name, inner);
  return fields.optionalCount(name) ?? inner;
}

function yarn(scaling: Scaling, parameters: ConfigFields): Scaled {
  const { positions, dimensions, base } = scaling;
  const original = originalPositions(scaling, parameters);
  const factor = parameters.optionalNumber('factor') ?? positions / original;
  const share = parameters.optionalNumber('mscale');
  const shareOfAll = parameters.optionalNumber('mscale_all_dim');
  const inferred =
    share && shareOfAll
      ? yarnMagnitude(factor, share) / yarnMagnitude(factor, shareOfAll)
      : yarnMagnitude(factor);
  const magnitude = parameters.optionalNumber('attention_factor') ?? inferred;
  const boundary = (turns: number) =>
    (dimensions * Math.log(original / (turns * 2 * Math.PI))) / (2 * Math.log(base));
  const truncate = parameters.flag('truncate', true);
  parameters.ignore('finetuned');
  // As in transformers, 0 is what an absent field is.
  const fast = boundary(parameters.number('beta_fast', 32) || 32);
  const slow = boundary(parameters.number('beta_slow', 1) || 1);
  const low = Math.max(truncate ? Math.floor(fast) : fast, 0);
  const high = Math.min(truncate ? Math.ceil(slow) : slow, dimensions - 1);
  const width = low === high ? 0.001 : high - low;
  const frequencies = powersOf(scaling).map((power, pair) => {
    const interpolated = Math.min(1, Math.max(0, (pair - low) / width));
    return Math.fround(interpolated / (factor * power) + (1 - interpolated) / power);
  });
  return { frequencies, magnitude };
}

/**
 * Longer sequences use other factors, which keys of a cached prefix would not have: the original length is
 * the limit.
 */
function longrope(scaling: Scaling, parameters: ConfigFields): Scaled {
  const { positions } = scaling;
  const original = originalPositions(scaling, parameters);
  parameters.ignore('long_factor', 'long_mscale', 'short_mscale');
  const factor = parameters.optionalNumber('factor') ?? positions / original;
  const inferred = factor <= 1 ? 1 : Math.sqrt(1 + Math.log(factor) / Math.log(original));
  const magnitude = parameters.optionalNumber('attention_factor') ?? inferred;
  const factors = parameters.numbers('short_factor');
  const powers = powersOf(scaling);
  if (factors.length !== powers.length) throw parameters.fault('short_factor', `${powers.length} numbers`);
  const frequencies = powers.map((power, pair) => Math.fround(1 / Math.fround(factors[pair]! * power)));
  return { frequencies, magnitude, maxPositions: Math.min(original, positions) };
}

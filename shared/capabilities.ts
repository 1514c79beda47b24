import { type GenerationRequest, generationRequest, wireConstraint } from './generation.ts';
import { NEUTRAL_SAMPLING, type SamplingParameters, samplingParameters } from './sampling.ts';

/**
 * What an origin announces in GET /models, and what a request needs: names of request fields, sampling
 * parameters and types of constraints. An origin ignores what it does not know, so the Worker must not send
 * it what the caller relies on.
 */

/** Header of the origin's and the Worker's answers: unknown keywords and formats of a schema. */
export const IGNORED_KEYWORDS_HEADER = 'x-ignored-keywords';

/** Most names in a header. */
const MAX_LISTED = 32;
const MAX_NAME_LENGTH = 64;

/** Returns names as the value of a header, percent-encoded. Of too many, the last is an ellipsis. */
export const headerList = (names: readonly string[]): string =>
  [...names.slice(0, MAX_LISTED), ...(names.length > MAX_LISTED ? ['…'] : [])]
    .map((name) => encodeURIComponent(name.slice(0, MAX_NAME_LENGTH).toWellFormed()))
    .join(', ');

const samplingNames = Object.keys(samplingParameters.shape) as (keyof SamplingParameters)[];

/** A seed that is a text. */
const SEED_TEXT = 'sampling.seed.text';

/** The capabilities of this version. */
export const CAPABILITIES: readonly string[] = [
  ...Object.keys(generationRequest.shape),
  ...samplingNames.map((name) => `sampling.${name}`),
  SEED_TEXT,
  ...wireConstraint.options.map(({ shape }) => `constraint.${shape.type.value}`),
];

/** Values that mean the same as an absent field. */
const isNeutral = (value: unknown): boolean =>
  [undefined, null, false, ''].includes(value as null) || (Array.isArray(value) && value.length === 0);

/** The JSON of both would take 1.6 % of a plain request's CPU time. */
const isSame = (left: unknown, right: unknown): boolean =>
  left === right || (typeof left === 'object' && JSON.stringify(left) === JSON.stringify(right));

/** Fields that change no answer. An origin that does not know them may serve the request. */
const HINTS: ReadonlySet<string> = new Set(['flex', 'tokensPerEvent']);

/** Returns the capabilities that an origin must have for this request. */
export function neededCapabilities({ sampling, constraint, ...fields }: GenerationRequest): string[] {
  const named = Object.entries(fields).filter(([name, value]) => !isNeutral(value) && !HINTS.has(name));
  const sampled = samplingNames.filter((name) => !isSame(sampling[name], NEUTRAL_SAMPLING[name]));
  return [
    ...named.map(([name]) => name),
    ...sampled.map((name) => `sampling.${name}`),
    ...(typeof sampling.seed === 'string' ? [SEED_TEXT] : []),
    ...(constraint === null ? [] : ['constraint', `constraint.${constraint.type}`]),
  ];
}

import type { SamplingParameters } from '@continuo/shared/sampling.ts';
import type { Breaker } from './dry-breakers.ts';

/** What a sampler gets of a request: its texts come with their tokens, so that samplers need no tokenizer. */
export type SamplerParameters = Omit<SamplingParameters, 'badWords' | 'drySequenceBreakers'> & {
  readonly badTokens?: readonly (readonly number[])[];
  /** Absent = none. */
  readonly dryBreakers?: readonly Breaker[];
};

/** The parameters of the draw from a processed row. Numbers, which threads can share. */
export const DRAW_PARAMETERS = [
  'temperature',
  'dynatempRange',
  'dynatempExponent',
  'topK',
  'topP',
  'minP',
  'typicalP',
  'topNSigma',
  'xtcProbability',
  'xtcThreshold',
  'mirostat',
  'mirostatTau',
  'mirostatEta',
  'minKeep',
] as const satisfies readonly (keyof SamplingParameters)[];

export type DrawParameters = Pick<SamplingParameters, (typeof DRAW_PARAMETERS)[number]>;

/** Temperatures below this are greedy. */
export const MIN_TEMPERATURE = 1e-5;

/** Returns whether every draw is the most likely token, so that all choices of a prompt are equal. */
export function isGreedy({ temperature }: DrawParameters): boolean {
  return temperature < MIN_TEMPERATURE;
}

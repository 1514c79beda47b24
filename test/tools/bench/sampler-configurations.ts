import type { SamplingParameters } from '../../../shared/sampling.ts';

export interface SamplerConfiguration extends Partial<SamplingParameters> {
  /** How many of the most likely tokens are returned with each token; no logprobs if absent. */
  readonly logprobs?: number;
}

const penalties = { repetitionPenalty: 1.1, frequencyPenalty: 0.2, presencePenalty: 0.1 };

/** The sampler configurations to measure, by the name of the table's row. */
export const SAMPLER_CONFIGURATIONS: Readonly<Record<string, SamplerConfiguration>> = {
  greedy: { temperature: 0 },
  'greedy, penalties': { temperature: 0, ...penalties },
  'greedy, five logprobs': { temperature: 0, logprobs: 5 },
  'temperature .8': { temperature: 0.8 },
  'temperature .8, five logprobs': { temperature: 0.8, logprobs: 5 },
  'temperature .8, penalties, five logprobs': { temperature: 0.8, ...penalties, logprobs: 5 },
  'top_k 40': { topK: 40 },
  'top_k 1000': { topK: 1000 },
  'min_p .05': { minP: 0.05 },
  'top_p .9': { topP: 0.9 },
  'top_p .9, T .12': { topP: 0.9, temperature: 0.12 },
  'top_p .999, T 2': { topP: 0.999, temperature: 2 },
  'top_k 40, top_p .95, min_p .05': { topK: 40, topP: 0.95, minP: 0.05 },
  'the same, penalties': { topK: 40, topP: 0.95, minP: 0.05, ...penalties },
  'top_nσ 1': { topNSigma: 1 },
  'typical .9': { typicalP: 0.9 },
  'typical .9, T .12': { typicalP: 0.9, temperature: 0.12 },
  'XTC only': { xtcProbability: 0.5, xtcThreshold: 0.1 },
  'dynamic temperature': { dynatempRange: 0.5 },
  'mirostat 1': { mirostat: 1 },
  'mirostat 2': { mirostat: 2 },
  'DRY, top_k 40': { dryMultiplier: 0.8, topK: 40 },
};

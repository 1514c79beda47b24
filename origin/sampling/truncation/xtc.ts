import { type Candidates, PROBABILITY_RESOLUTION } from '../candidates.ts';
import type { DrawParameters } from '../parameters.ts';
import { DRAW_XTC, type DrawSource } from '../rng.ts';
import { LOWEST_LOGIT } from '../row.ts';
import type { SamplerWorkspace } from '../workspace.ts';
import { gatherAbove } from './gather.ts';
import type { TruncationFactory } from './truncation.ts';

/** Above 0.5, at most one token can reach the threshold, and a single token is never removed. */
const MAX_THRESHOLD = 0.5;
/** Nats. Slightly more tokens are gathered than reach the threshold, so that rounding leaves none out. */
const SLACK = 2 ** -20;

/**
 * Exclude top choices (p-e-w's proposal for text-generation-webui; llama.cpp). With probability
 * xtc_probability, drawn once per step, removes all tokens with p ≥ xtc_threshold except the least likely of
 * them. Among equally unlikely ones, the highest id stays. Removes nothing if fewer than min_keep tokens
 * would remain.
 */
export const xtc: TruncationFactory = (parameters, draws) => {
  const { xtcProbability, xtcThreshold, minKeep } = parameters;
  if (xtcProbability <= 0 || xtcThreshold > MAX_THRESHOLD) return null;
  return {
    apply({ candidates }, step) {
      if (draws.uniform(step, DRAW_XTC) >= xtcProbability) return;
      const minWeight = minExcludedWeight(xtcThreshold, candidates.mass);
      const spared = sparedIndex(candidates, minWeight, candidates.count, minKeep);
      if (spared >= 0) candidates.keepIf((weight, i) => weight < minWeight || i === spared);
    },
  };
};

/** Whether XTC is the only truncation. It leaves nearly all tokens, and gathering many takes 0.5 ms. */
export function isXtcOnly(parameters: DrawParameters): boolean {
  const { topK, topNSigma, typicalP, topP, minP, xtcProbability, xtcThreshold } = parameters;
  if (topK > 0 || topNSigma > 0 || typicalP < 1 || topP < 1 || minP > 0) return false;
  return xtcProbability > 0 && xtcThreshold <= MAX_THRESHOLD;
}

/**
 * Applies XTC as the only truncation: forbids the excluded tokens in a copy of the row and makes that the
 * row.
 */
export function excludeTopChoices(
  { xtcProbability, xtcThreshold, minKeep }: DrawParameters,
  draws: DrawSource,
  step: number,
  workspace: SamplerWorkspace,
): void {
  if (draws.uniform(step, DRAW_XTC) >= xtcProbability) return;
  const { row, candidates, edited } = workspace;
  const { logits, highest, coldness } = row;
  const minWeight = minExcludedWeight(xtcThreshold, row.weigh());
  const cut = minWeight > 0 ? highest + (Math.log(minWeight) - SLACK) / coldness : LOWEST_LOGIT;
  gatherAbove(cut, workspace);
  const all = minKeep > 1 ? row.deviations().count : logits.length;
  const spared = sparedIndex(candidates, minWeight, all, minKeep);
  if (spared >= 0) {
    if (logits !== edited) edited.set(logits);
    for (let i = 0; i < candidates.count; i++) {
      const isExcluded = candidates.weights[i]! >= minWeight && i !== spared;
      if (isExcluded) edited[candidates.ids[i]!] = Number.NEGATIVE_INFINITY;
    }
    row.begin(edited);
    row.coldness = coldness;
  }
  candidates.set(0, 0);
}

function minExcludedWeight(threshold: number, mass: number): number {
  return (threshold - PROBABILITY_RESOLUTION) * mass;
}

/**
 * Index of the one token that stays among those of at least `minWeight`; −1 if nothing is to be removed.
 * @param candidates at least all tokens of this weight
 * @param all how many tokens there are
 */
function sparedIndex(
  { weights, count }: Candidates,
  minWeight: number,
  all: number,
  minKeep: number,
): number {
  let reaching = 0;
  let spared = -1;
  for (let i = 0; i < count; i++) {
    if (weights[i]! < minWeight) continue;
    reaching++;
    if (spared < 0 || weights[i]! <= weights[spared]!) spared = i;
  }
  return reaching < 2 || all - reaching + 1 < minKeep ? -1 : spared;
}

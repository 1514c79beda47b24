import { DRAW_XTC, type DrawSource } from '../rng.ts';
import type { DrawParameters } from '../token-draw.ts';
import { type Candidates, PROBABILITY_RESOLUTION } from './candidates.ts';
import type { Bounds } from './row-sums.ts';
import type { TruncationFactory } from './truncation.ts';

/** Above one half at most one token can reach the threshold, and one token is never removed. */
const HIGHEST_THRESHOLD = 0.5;

/**
 * Exclude top choices (p-e-w's proposal for text-generation-webui; llama.cpp): with probability xtc_probability, drawn
 * once per step, removes of the tokens with p ≥ xtc_threshold all but the least likely; of equally unlikely ones the
 * highest id stays. Nothing is removed when that would leave fewer than min_keep.
 */
export const xtc: TruncationFactory = (parameters, draws) => {
  const { xtcProbability, xtcThreshold, minKeep } = parameters;
  if (xtcProbability <= 0 || xtcThreshold > HIGHEST_THRESHOLD) return null;
  return {
    apply({ candidates }, step) {
      if (!xtcActs(parameters, draws, step)) return;
      const { weights, ids, count, mass } = candidates;
      const excluded = excludedOf(candidates, xtcCut(xtcThreshold, mass), count, minKeep);
      if (excluded === null) return;
      let left = 0;
      let sum = 0;
      for (let i = 0; i < count; i++) {
        const weight = weights[i]!;
        if (weight >= excluded.most && ids[i] !== excluded.spared) continue;
        ids[left] = ids[i]!;
        weights[left++] = weight;
        sum += weight;
      }
      candidates.set(left, sum);
    },
  };
};

export function xtcActs({ xtcProbability }: DrawParameters, draws: DrawSource, step: number): boolean {
  return draws.uniform(step, DRAW_XTC) < xtcProbability;
}

/** The least weight that reaches the threshold. */
export function xtcCut(threshold: number, mass: number): number {
  return (threshold - PROBABILITY_RESOLUTION) * mass;
}

/**
 * What is removed: whatever weighs `most` or more but the spared token; null = nothing.
 * @param candidates those at least that weigh as much
 * @param all how many tokens there are together
 */
export function excludedOf(
  { weights, ids, count }: Candidates,
  most: number,
  all: number,
  minKeep: number,
): Pick<Bounds, 'most' | 'spared'> | null {
  let reaching = 0;
  let spared = -1;
  for (let i = 0; i < count; i++) {
    if (weights[i]! < most) continue;
    reaching++;
    if (spared < 0 || weights[i]! <= weights[spared]!) spared = i;
  }
  if (reaching < 2 || all - reaching + 1 < minKeep) return null;
  return { most, spared: ids[spared]! };
}

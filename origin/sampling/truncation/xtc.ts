import { DRAW_XTC } from '../rng.ts';
import { PROBABILITY_RESOLUTION } from './candidates.ts';
import type { TruncationFactory } from './truncation.ts';

/** Above one half at most one token can reach the threshold, and one token is never removed. */
const HIGHEST_THRESHOLD = 0.5;

/**
 * Exclude top choices (p-e-w's proposal for text-generation-webui; llama.cpp): with probability xtc_probability, drawn
 * once per step, removes of the tokens with p ≥ xtc_threshold all but the least likely; of equally unlikely ones the
 * highest id stays. Nothing is removed when that would leave fewer than min_keep.
 */
export const xtc: TruncationFactory = ({ xtcProbability, xtcThreshold, minKeep }, draws) => {
  if (xtcProbability <= 0 || xtcThreshold > HIGHEST_THRESHOLD) return null;
  return {
    apply({ candidates }, step) {
      if (draws.uniform(step, DRAW_XTC) >= xtcProbability) return;
      const { weights, ids, count, mass } = candidates;
      const cut = (xtcThreshold - PROBABILITY_RESOLUTION) * mass;
      let reaching = 0;
      let spared = -1;
      for (let i = 0; i < count; i++) {
        if (weights[i]! < cut) continue;
        reaching++;
        if (spared < 0 || weights[i]! <= weights[spared]!) spared = i;
      }
      if (reaching < 2 || count - reaching + 1 < minKeep) return;
      let left = 0;
      let sum = 0;
      for (let i = 0; i < count; i++) {
        const weight = weights[i]!;
        if (weight >= cut && i !== spared) continue;
        ids[left] = ids[i]!;
        weights[left++] = weight;
        sum += weight;
      }
      candidates.set(left, sum);
    },
  };
};

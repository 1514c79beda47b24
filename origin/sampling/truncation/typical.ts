import { type Candidates, PROBABILITY_RESOLUTION } from '../candidates.ts';
import { exponential } from '../exponential.ts';
import type { TruncationFactory } from './truncation.ts';

/** The share of the candidates' mass that typical sampling keeps. */
export function typicalShare(typicalP: number): number {
  return typicalP + PROBABILITY_RESOLUTION;
}

/**
 * Locally typical sampling (Meister et al., "Locally Typical Sampling", 2022; llama.cpp's boundary): with
 * H = −Σ p ln p, keeps tokens by ascending |−ln p − H| until their sum exceeds typical_p.
 */
export const typical: TruncationFactory = ({ typicalP, minKeep }) => {
  if (typicalP >= 1) return null;
  const share = typicalShare(typicalP);
  return {
    apply({ candidates, keys }) {
      const { weights, count } = candidates;
      // ln p = ln w − ln mass, so |−ln p − H| = |ln w − Σ p ln w|. Ratios order like their logarithms.
      const scale = 1 / exponential(meanLogWeightOf(candidates));
      for (let i = 0; i < count; i++) {
        const ratio = weights[i]! * scale;
        keys[i] = ratio < 1 ? ratio : 1 / ratio;
      }
      candidates.keepPrefix(keys, share, Math.max(1, minKeep));
    },
  };
};

function meanLogWeightOf({ weights, count, mass, meanLogWeight }: Candidates): number {
  if (!Number.isNaN(meanLogWeight)) return meanLogWeight;
  let weighted = 0;
  for (let i = 0; i < count; i++) if (weights[i]! > 0) weighted += weights[i]! * Math.log(weights[i]!);
  // Rounding may raise it above 0.
  return Math.min(0, weighted / mass);
}

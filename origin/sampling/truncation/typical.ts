import { exponential } from '../exponential.ts';
import { type Candidates, PROBABILITY_RESOLUTION } from './candidates.ts';
import { keepPrefix } from './prefix.ts';
import type { TruncationFactory } from './truncation.ts';

/** Of the candidates' mass, for this typical_p. */
export function typicalShare(typicalP: number): number {
  return typicalP + PROBABILITY_RESOLUTION;
}

/**
 * Locally typical sampling (Meister et al., "Locally Typical Sampling", 2022; llama.cpp's boundary): with
 * H = −Σ p ln p, tokens by ascending |−ln p − H| until their sum exceeds typical_p.
 */
export const typical: TruncationFactory = ({ typicalP, minKeep }) => {
  if (typicalP >= 1) return null;
  const share = typicalShare(typicalP);
  return {
    apply({ candidates, keys, search }) {
      const { weights, count } = candidates;
      // ln p = ln w − ln mass, so |−ln p − H| = |ln w − Σ p ln w|; its exponential needs no logarithms.
      const scale = 1 / exponential(meanLogOf(candidates));
      for (let i = 0; i < count; i++) {
        const ratio = weights[i]! * scale;
        keys[i] = ratio < 1 ? ratio : 1 / ratio;
      }
      keepPrefix(candidates, keys, share, Math.max(1, minKeep), search);
    },
  };
};

/** Σ p ln w. */
function meanLogOf({ weights, count, mass, meanLog }: Candidates): number {
  if (!Number.isNaN(meanLog)) return meanLog;
  let weighted = 0;
  for (let i = 0; i < count; i++) if (weights[i]! > 0) weighted += weights[i]! * Math.log(weights[i]!);
  // Rounding may lift it above 0.
  return Math.min(0, weighted / mass);
}

import { PROBABILITY_RESOLUTION } from './candidates.ts';
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
      const { weights, count, mass, meanLog } = candidates;
      // Logarithms are what costs here, so each is kept until its key takes its place.
      let weighted = 0;
      for (let i = 0; i < count; i++) {
        const weight = weights[i]!;
        keys[i] = Math.log(weight);
        if (weight > 0) weighted += weight * keys[i]!;
      }
      // ln p = ln w − ln mass, so |−ln p − H| = |ln w − Σ p ln w|. The key turns the smallest into the largest.
      const expected = Number.isNaN(meanLog) ? weighted / mass : meanLog;
      for (let i = 0; i < count; i++) keys[i] = 1 / (1 + Math.abs(keys[i]! - expected));
      keepPrefix(candidates, keys, share, Math.max(1, minKeep), search);
    },
  };
};

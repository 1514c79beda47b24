import { type Candidates, PROBABILITY_RESOLUTION } from '../candidates.ts';
import type { TruncationFactory } from './truncation.ts';
import { typical } from './typical.ts';
import { xtc } from './xtc.ts';

/**
 * Nucleus sampling (Holtzman et al., "The Curious Case of Neural Text Degeneration", 2020): the fewest
 * tokens, most likely first, whose probabilities sum to at least top_p. Zero keeps the most likely token.
 */
const topP: TruncationFactory = ({ topP, minKeep }) => {
  if (topP >= 1) return null;
  return { apply: ({ candidates }) => keepNucleus(candidates, topP, Math.max(1, minKeep)) };
};

/** Keeps the fewest candidates, most likely first, whose probabilities sum to at least `topP`. */
export function keepNucleus(candidates: Candidates, topP: number, minKeep: number): void {
  candidates.keepPrefix(candidates.weights, topP - PROBABILITY_RESOLUTION, minKeep);
}

/** Min-p (Nguyen et al., "Turning Up the Heat: Min-p Sampling", 2024): keeps p ≥ min_p · max p. */
const minP: TruncationFactory = ({ minP, minKeep }) => {
  if (minP <= 0) return null;
  const ratio = minP * (1 - PROBABILITY_RESOLUTION);
  return {
    apply({ candidates }) {
      candidates.keepAbove(ratio * candidates.maxWeight(), minKeep);
    },
  };
};

/**
 * Truncations in the order in which they apply, each to what the one before left, renormalised. Top-nσ and
 * top-k come before all of them, in `shortlist`.
 */
export const TRUNCATIONS: readonly TruncationFactory[] = [typical, topP, minP, xtc];

import { PROBABILITY_RESOLUTION } from './candidates.ts';
import { keepPrefix } from './prefix.ts';
import type { TruncationFactory } from './truncation.ts';

/**
 * Nucleus sampling (Holtzman et al., "The Curious Case of Neural Text Degeneration", 2020): the fewest tokens, most
 * likely first, whose probabilities sum to at least top_p. Zero keeps the most likely token.
 */
export const topP: TruncationFactory = ({ topP, minKeep }) => {
  if (topP >= 1) return null;
  const share = topP - PROBABILITY_RESOLUTION;
  return {
    apply({ candidates, search }) {
      keepPrefix(candidates, candidates.weights, share, Math.max(1, minKeep), search);
    },
  };
};

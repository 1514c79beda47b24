import { PROBABILITY_RESOLUTION } from './candidates.ts';
import { keepAbove } from './keep-above.ts';
import type { TruncationFactory } from './truncation.ts';

/** Min-p (Nguyen et al., "Turning Up the Heat: Min-p Sampling", 2024): keeps p ≥ min_p · max p. */
export const minP: TruncationFactory = ({ minP, minKeep }) => {
  if (minP <= 0) return null;
  const ratio = minP * (1 - PROBABILITY_RESOLUTION);
  return {
    apply({ candidates, search }) {
      keepAbove(candidates, ratio * candidates.peak(), minKeep, search);
    },
  };
};

import { LARGEST_FLOAT32, type LogitProcessorFactory } from './processor.ts';

/**
 * Repetition penalty (Keskar et al., "CTRL", 2019, as corrected for negative logits): every token of the prompt or the
 * generated text within the window, once: z ← z / r where z > 0, z · r elsewhere.
 */
export const repetition: LogitProcessorFactory = ({ repetitionPenalty, repeatLastN }) => {
  if (repetitionPenalty === 1 || repeatLastN === 0) return null;
  return {
    apply(scores, history) {
      const { distinct, ids, total } = history.countsOver(repeatLastN);
      for (let entry = 0; entry < distinct; entry++) {
        if (total[entry] === 0) continue;
        const id = ids[entry]!;
        const score = scores.get(id);
        // Rewards may be as large as one likes, but an infinite logit is no logit.
        const rewarded = Math.min(score / repetitionPenalty, LARGEST_FLOAT32);
        scores.set(id, score > 0 ? rewarded : score * repetitionPenalty);
      }
    },
  };
};

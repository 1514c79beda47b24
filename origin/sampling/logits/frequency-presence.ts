import type { LogitProcessorFactory } from './processor.ts';

/**
 * OpenAI's penalties: z ← z − c · frequency_penalty − [c > 0] · presence_penalty, with c the token's occurrences within
 * the window: among generated tokens, or in prompt and generated text together where the scope is 'all' (llama.cpp).
 */
export const frequencyPresence: LogitProcessorFactory = (parameters) => {
  const { frequencyPenalty, presencePenalty, repeatLastN, penaltyScope } = parameters;
  if ((frequencyPenalty === 0 && presencePenalty === 0) || repeatLastN === 0) return null;
  return {
    apply(scores, history) {
      const counts = history.countsOver(repeatLastN);
      const { distinct, ids } = counts;
      const occurrences = penaltyScope === 'all' ? counts.total : counts.generated;
      for (let entry = 0; entry < distinct; entry++) {
        const [id, count] = [ids[entry]!, occurrences[entry]!];
        if (count > 0) scores.set(id, scores.get(id) - (count * frequencyPenalty + presencePenalty));
      }
    },
  };
};

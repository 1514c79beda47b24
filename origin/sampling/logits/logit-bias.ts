import type { LogitProcessorFactory } from './processor.ts';

/** OpenAI's logit_bias: z ← z + b; null forbids the token. */
export const logitBias: LogitProcessorFactory = ({ logitBias }) => {
  if (logitBias.length === 0) return null;
  return {
    apply(scores) {
      for (const [id, bias] of logitBias) {
        scores.set(id, bias === null ? Number.NEGATIVE_INFINITY : scores.get(id) + bias);
      }
    },
  };
};

import type { PromptToken } from '../api/completion-stream.ts';
import { probabilityOf } from '../tokens/probability.ts';

/** Returns the mean logprob of the tokens that have one; null without any. */
export function meanLogprob(tokens: readonly PromptToken[]): number | null {
  let sum = 0;
  let count = 0;
  for (const { logprob } of tokens) {
    if (logprob === null) continue;
    sum += logprob;
    count += 1;
  }
  return count === 0 ? null : sum / count;
}

/** Returns a probability in whole per cent, such as `41 %`. */
export const percentOf = (logprob: number): string => `${Math.round(probabilityOf(logprob) * 100)} %`;

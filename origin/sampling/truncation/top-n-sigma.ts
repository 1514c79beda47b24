import { LOWEST_LOGIT } from './gather.ts';

/**
 * The logit below which top-nσ drops a token: max z − n·σ, σ the population standard deviation of the logits that are
 * not −∞ (Tang et al., "Top-nσ: Not All Logits Are You Need", 2024). Scaling by the temperature scales both sides, so
 * the unscaled logits give the same set.
 */
export function sigmaCut(logits: Float32Array, highest: number, n: number): number {
  const size = logits.length;
  let count = 0;
  let sum = 0;
  let squares = 0;
  for (let id = 0; id < size; id++) {
    const below = highest - logits[id]!;
    if (below > highest - LOWEST_LOGIT) continue;
    count++;
    sum += below;
    squares += below * below;
  }
  const mean = sum / count;
  return highest - n * Math.sqrt(Math.max(0, squares / count - mean * mean));
}

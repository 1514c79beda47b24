import { exponential } from '../exponential.ts';
import type { Row } from './gather.ts';

/** Σ e^((z − max z) / T) over the tokens whose logit is at least `cut`, in ascending order of ids. */
export function sumWeights(row: Row, cut: number): number {
  const { logits, highest, coldness } = row;
  const size = logits.length;
  let sum = 0;
  for (let id = 0; id < size; id++) {
    const logit = logits[id]!;
    if (logit >= cut) sum += exponential((logit - highest) * coldness);
  }
  return sum;
}

/** Tokens per partial sum of `drawFromRow`. */
const BLOCK = 256;

/**
 * Draws from the whole softmax without storing it: one pass leaves a partial sum per block of ids, and only the block
 * that the uniform number falls into is walked again. Inverse CDF in ascending order of ids.
 * @param sums working memory, one number per 256 tokens.
 */
export function drawFromRow(row: Row, uniform: number, sums: Float64Array): number {
  const { logits, highest, coldness } = row;
  const size = logits.length;
  let total = 0;
  for (let start = 0, block = 0; start < size; start += BLOCK, block++) {
    const end = Math.min(start + BLOCK, size);
    let sum = 0;
    for (let id = start; id < end; id++) sum += exponential((logits[id]! - highest) * coldness);
    sums[block] = sum;
    total += sum;
  }
  const target = uniform * total;
  let before = 0;
  let block = 0;
  while (before + sums[block]! <= target) before += sums[block++]!;
  let sum = 0;
  for (let id = block * BLOCK; ; id++) {
    sum += exponential((logits[id]! - highest) * coldness);
    if (before + sum > target) return id;
  }
}

import type { RowBlocks } from '../row-blocks.ts';
import type { Row } from './gather.ts';

/**
 * The logit below which top-nσ drops a token: max z − n·σ, σ the population standard deviation of the logits that are
 * not −∞ (Tang et al., "Top-nσ: Not All Logits Are You Need", 2024). Scaling by the temperature scales both sides, so
 * the unscaled logits give the same set.
 */
export function sigmaCut(row: Row, n: number, blocks: RowBlocks): number {
  const sums = blocks.deviations(row);
  const [count, sum, squares] = [sums[0]!, sums[1]!, sums[2]!];
  const mean = sum / count;
  return row.highest - n * Math.sqrt(Math.max(0, squares / count - mean * mean));
}

import { exponential } from '../exponential.ts';
import type { RowBlocks } from '../row-blocks.ts';
import type { SamplerWorkspace } from '../workspace.ts';
import { LOWEST_LOGIT, type Row } from './gather.ts';

/**
 * Σ e^((z − max z) / T) over the tokens whose logit is at least `cut`, in ascending order of ids. Over the whole
 * softmax, that is with a cut of LOWEST_LOGIT, it comes from the sums of blocks where there are any.
 */
export function sumWeights(row: Row, cut: number, { blocks }: SamplerWorkspace): number {
  if (blocks.weighs && cut <= LOWEST_LOGIT) return blocks.weigh(row);
  const { logits, highest, coldness } = row;
  const { maxima, blockSize } = blocks;
  const size = logits.length;
  let sum = 0;
  for (let start = 0, block = 0; start < size; start += blockSize, block++) {
    if (maxima[block]! < cut) continue;
    const end = Math.min(start + blockSize, size);
    for (let id = start; id < end; id++) {
      const logit = logits[id]!;
      if (logit >= cut) sum += exponential((logit - highest) * coldness);
    }
  }
  return sum;
}

/** Tokens per partial sum of `drawFromRow` where no kernel sums blocks. */
const BLOCK = 256;

/**
 * Draws from the whole softmax without storing it: one pass leaves a partial sum per block of ids, and only the block
 * that the uniform number falls into is walked again. Inverse CDF in ascending order of ids.
 */
export function drawFromRow(row: Row, uniform: number, workspace: SamplerWorkspace): number {
  const { blocks, keys: sums } = workspace;
  if (blocks.weighs) {
    blocks.weigh(row);
    return drawFromBlocks(row, blocks.sums, EVERYTHING, uniform, blocks);
  }
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

/** Which tokens are drawn from, by their weights. */
export interface Bounds {
  /** Those that weigh more, and of those that weigh as much, up to the id `last`; */
  readonly least: number;
  readonly last: number;
  /** of them, those that weigh less, and the one with the id `spared`. */
  readonly most: number;
  readonly spared: number;
}

export const EVERYTHING: Bounds = { least: 0, last: -1, most: Number.POSITIVE_INFINITY, spared: -1 };

/**
 * Draws from the tokens within bounds, of which each block's sum is given. Where a kernel has summed in float32, a block's
 * share is off by about 10⁻⁶ of it; shares within a block are exact.
 */
export function drawFromBlocks(
  row: Row,
  sums: Float64Array,
  bounds: Bounds,
  uniform: number,
  { blockSize }: RowBlocks,
): number {
  let total = 0;
  for (let block = 0; block < sums.length; block++) total += sums[block]!;
  const target = uniform * total;
  let before = 0;
  let block = 0;
  while (before + sums[block]! <= target) before += sums[block++]!;
  const start = block * blockSize;
  const end = Math.min(start + blockSize, row.logits.length);
  let exact = 0;
  for (let id = start; id < end; id++) exact += weightIn(row, id, bounds);
  const within = ((target - before) / sums[block]!) * exact;
  let sum = 0;
  let drawn = start;
  for (let id = start; id < end && sum <= within; id++) {
    const weight = weightIn(row, id, bounds);
    if (weight === 0) continue;
    sum += weight;
    drawn = id;
  }
  return drawn;
}

/** A token's weight, zero where it is not among those drawn from. */
export function weightIn({ logits, highest, coldness }: Row, id: number, bounds: Bounds): number {
  const { least, last, most, spared } = bounds;
  const weight = exponential((logits[id]! - highest) * coldness);
  if (weight >= most && id !== spared) return 0;
  return weight > least || (weight === least && id <= last) ? weight : 0;
}

import type { RowBlocks } from '../row-blocks.ts';
import type { SamplerWorkspace } from '../workspace.ts';
import type { Row } from './gather.ts';

/** Fewer blocks than this have tokens near the likeliest of all, which is e^−3 of its weight at least. */
const PEAKED = 32;
const NEAR = 3;

/** Whether few tokens weigh nearly all, as far as the blocks tell; then what is known of them shows where to cut. */
export function isPeaked({ highest, coldness }: Row, { weighs, maxima }: RowBlocks): boolean {
  let near = weighs ? 0 : PEAKED;
  for (let block = 0; block < maxima.length && near < PEAKED; block++) {
    if ((highest - maxima[block]!) * coldness < NEAR) near++;
  }
  return near < PEAKED;
}

/** Halvings of the range in which the cut is looked for: finer than a cut needs to be. */
const HALVINGS = 12;

/**
 * No cut above this one leaves tokens that weigh `target`: the blocks with such tokens do not weigh as much, whole as
 * they are. Close where few tokens weigh nearly all. After `blocks.weigh`.
 */
export function highestCut(
  { highest }: Row,
  target: number,
  lowest: number,
  workspace: SamplerWorkspace,
): number {
  const { blocks, order: open } = workspace;
  const { maxima, sums } = blocks;
  let count = maxima.length;
  for (let block = 0; block < count; block++) open[block] = block;
  let below = lowest;
  let above = highest;
  for (let halving = 0; halving < HALVINGS; halving++) {
    const middle = (below + above) / 2;
    let weight = 0;
    for (let i = 0; i < count; i++) if (maxima[open[i]!]! >= middle) weight += sums[open[i]!]!;
    if (weight < target) {
      above = middle;
      continue;
    }
    below = middle;
    // Blocks below it will not count again.
    let left = 0;
    for (let i = 0; i < count; i++) if (maxima[open[i]!]! >= middle) open[left++] = open[i]!;
    count = left;
  }
  return above;
}

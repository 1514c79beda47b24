import type { DrawParameters } from '../token-draw.ts';
import type { SamplerWorkspace } from '../workspace.ts';
import { gatherAbove, type Row } from './gather.ts';
import { type Bounds, drawFromBlocks, EVERYTHING, weightIn } from './row-sums.ts';
import { excludedOf, xtcCut } from './xtc.ts';

/** Below, more tokens than are worth listing may reach the threshold. */
const LEAST_THRESHOLD = 2 ** -10;
/** A little more is listed than looked at, so that rounding leaves nothing out; in nats. */
const SLACK = 2 ** -20;

/** Whether XTC is the only truncation, so that nearly all tokens are left and need not be gathered. */
export function isXtcAlone(parameters: DrawParameters): boolean {
  const { topK, topNSigma, typicalP, topP, minP, xtcProbability, xtcThreshold } = parameters;
  const others = topK > 0 || topNSigma > 0 || typicalP < 1 || topP < 1 || minP > 0;
  return !others && xtcProbability > 0 && xtcThreshold >= LEAST_THRESHOLD;
}

/**
 * Draws from a large vocabulary less what XTC removes where it acts: only tokens that reach the threshold are looked at one
 * by one. Inverse CDF in ascending order of ids, as exact as a draw from the whole softmax.
 */
export function drawPastTopChoices(
  row: Row,
  { xtcThreshold, minKeep }: DrawParameters,
  uniform: number,
  workspace: SamplerWorkspace,
): number {
  const { blocks, candidates } = workspace;
  const cut = xtcCut(xtcThreshold, blocks.weigh(row));
  gatherAbove(row, row.highest + (Math.log(cut) - SLACK) / row.coldness, workspace);
  const all = minKeep > 1 ? blocks.deviations(row)[0]! : row.logits.length;
  const bounds = { ...EVERYTHING, ...excludedOf(candidates, cut, all, minKeep) };
  subtractExcluded(row, bounds, workspace);
  // Those that reach the threshold are nothing to look at.
  candidates.set(0, 0);
  return drawFromBlocks(row, blocks.above, bounds, uniform, blocks);
}

/** Leaves each block's sum of what is not excluded in `above`; blocks that lose a token are added up anew. */
function subtractExcluded(row: Row, bounds: Bounds, { blocks, candidates }: SamplerWorkspace): void {
  const { above, sums, blockBits, blockSize } = blocks;
  above.set(sums);
  for (let i = 0; i < candidates.count; i++) {
    if (candidates.weights[i]! < bounds.most || candidates.ids[i] === bounds.spared) continue;
    const block = candidates.ids[i]! >>> blockBits;
    const end = Math.min((block + 1) * blockSize, row.logits.length);
    above[block] = 0;
    for (let id = block * blockSize; id < end; id++) above[block]! += weightIn(row, id, bounds);
  }
}

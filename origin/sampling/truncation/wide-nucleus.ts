import type { DrawParameters } from '../token-draw.ts';
import type { SamplerWorkspace } from '../workspace.ts';
import { PROBABILITY_RESOLUTION } from './candidates.ts';
import { gatherAbove, type Row } from './gather.ts';
import { isPeaked } from './highest-cut.ts';
import { drawFromBlocks, EVERYTHING } from './row-sums.ts';

/** Fewer tokens are gathered faster than this saves. */
const WIDE = 1024;

/** Whether top-p is the only truncation, so that only the draw needs what it leaves. */
export function isNucleusAlone(parameters: DrawParameters): boolean {
  const { topK, topNSigma, typicalP, topP, minP, xtcProbability } = parameters;
  return topP < 1 && topK === 0 && topNSigma <= 0 && typicalP >= 1 && minP <= 0 && xtcProbability <= 0;
}

/**
 * Draws from what top-p leaves where that is much of a large vocabulary, without gathering it: tokens that a sample of the
 * row shows to be within the nucleus are only summed, by blocks; those near its boundary alone are gathered, and the boundary
 * looked for among them. Inverse CDF in ascending order of ids, as exact as a draw from the whole softmax.
 * @returns −1 where the nucleus is not wide, or its boundary is not where the sample has it
 */
export function drawFromWideNucleus(
  row: Row,
  { topP, minKeep }: DrawParameters,
  uniform: number,
  workspace: SamplerWorkspace,
): number {
  const { blocks, candidates, sample, search } = workspace;
  if (isPeaked(row, blocks)) return -1;
  sample.take(row, blocks);
  const within = sample.cutBelow(row, 1 - topP);
  if (sample.countAbove(row, within) < WIDE) return -1;
  const sure = blocks.weighAbove(row, within);
  const mass = blocks.weigh(row);
  const target = (topP - PROBABILITY_RESOLUTION) * mass - sure;
  // No token weighs more than one, so that there are at least as many as they weigh.
  if (target <= 0 || sure < minKeep) return -1;
  gatherAbove(row, sample.cutReaching(row, within, target), workspace, within);
  if (candidates.mass < target) return -1;
  search.run(candidates.weights, target, 1);
  const last = addCandidates(target, workspace);
  // Those near the boundary alone are nothing to look at.
  candidates.set(0, 0);
  const bounds = { ...EVERYTHING, least: search.boundary, last };
  return drawFromBlocks(row, blocks.above, bounds, uniform, blocks);
}

/**
 * Adds the candidates down to the boundary to their blocks' sums: of those on it the lowest ids, as many as it takes. Returns
 * the last of these.
 */
function addCandidates(target: number, { blocks, candidates, search }: SamplerWorkspace): number {
  const { above, blockBits } = blocks;
  const { ids, weights, count } = candidates;
  const { boundary } = search;
  let sum = search.betterWeight;
  let last = -1;
  for (let i = 0; i < count; i++) {
    const weight = weights[i]!;
    if (weight < boundary) continue;
    if (weight === boundary) {
      if (sum >= target) continue;
      sum += weight;
      last = ids[i]!;
    }
    above[ids[i]! >>> blockBits]! += weight;
  }
  return last;
}

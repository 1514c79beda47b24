import type { DrawParameters } from '../token-draw.ts';
import type { SamplerWorkspace } from '../workspace.ts';
import { gatherAbove, gatherTop, LOWEST_LOGIT, type Row } from './gather.ts';
import { highestCut, isPeaked } from './highest-cut.ts';
import { sumWeights } from './row-sums.ts';
import { sigmaCut } from './top-n-sigma.ts';
import { typicalShare } from './typical.ts';

/** Slack on cuts that merely save work, so that rounding never drops what the exact step would keep. */
const SLACK = 1 - 2 ** -16;

/**
 * Collects the candidates of a row: those that top-nσ and then top-k keep (min_keep of them at least), less tokens that
 * top-p or min-p are bound to drop. Leaving out the latter never changes what is kept in the end, only how many
 * candidates the steps have to look at; where top-p comes next, `candidates.mass` still counts them.
 */
export function shortlist(row: Row, parameters: DrawParameters, workspace: SamplerWorkspace): void {
  const { topNSigma, topK, minKeep, typicalP } = parameters;
  const sigma = topNSigma > 0 ? sigmaCut(row, topNSigma, workspace.blocks) : LOWEST_LOGIT;
  if (topK > 0) gatherTop(row, Math.max(topK, minKeep), sigma, workspace);
  else if (typicalP < 1) gatherForTypical(row, parameters, sigma, workspace);
  else gatherLikely(row, parameters, sigma, workspace);
  // Fewer than min_keep: then that many are what is left in the end.
  if (workspace.candidates.count < minKeep) gatherTop(row, minKeep, LOWEST_LOGIT, workspace);
}

/** Where top-p and min-p come next, both keep a prefix: whatever one of them is bound to drop can be left out. */
function gatherLikely(row: Row, parameters: DrawParameters, sigma: number, workspace: SamplerWorkspace) {
  const { topP, minP } = parameters;
  const temperature = 1 / row.coldness;
  const minPCut = minP > 0 ? row.highest + temperature * Math.log(minP * SLACK) : LOWEST_LOGIT;
  if (topP >= 1) {
    gatherAbove(row, Math.max(sigma, minPCut), workspace);
    return;
  }
  const mass = sumWeights(row, sigma, workspace);
  // Tokens lighter than this weigh less than the tail that top-p drops, even all of the vocabulary together.
  const lightest = ((1 - topP) * mass * SLACK) / row.logits.length;
  const topPCut = row.highest + temperature * Math.log(lightest);
  gatherNucleus(row, topP * mass, mass, Math.max(sigma, minPCut, topPCut), workspace);
  workspace.candidates.mass = mass;
}

/**
 * Gathers tokens that weigh `target` of `mass`, and few others, or all at and above `lowest` where they do not weigh as
 * much. As long as they fall short, the cut falls: by a factor √e of the weights, then e, e² …
 */
function gatherNucleus(
  row: Row,
  target: number,
  mass: number,
  lowest: number,
  workspace: SamplerWorkspace,
): void {
  const { candidates } = workspace;
  let cut = nucleusCut(row, target, mass, lowest, workspace);
  for (let fall = 0.5 / row.coldness; ; fall *= 2) {
    cut = Math.max(cut, lowest);
    gatherAbove(row, cut, workspace);
    // Said so that it ends for NaN, too.
    if (!(cut > lowest) || candidates.mass >= target) return;
    cut -= fall;
  }
}

/** Above this cut tokens weigh a little more than `target`, most likely. */
function nucleusCut(
  row: Row,
  target: number,
  mass: number,
  lowest: number,
  workspace: SamplerWorkspace,
): number {
  const { blocks, sample } = workspace;
  if (isPeaked(row, blocks)) return highestCut(row, target, lowest, workspace) - 1 / row.coldness;
  sample.take(row, blocks);
  return sample.cutAbove(row, mass - target);
}

/** Where typical sampling comes next. It looks at the whole distribution; what that is, the blocks may know. */
function gatherForTypical(
  row: Row,
  { typicalP, minKeep }: DrawParameters,
  sigma: number,
  workspace: SamplerWorkspace,
): void {
  if (workspace.blocks.weighs && sigma === LOWEST_LOGIT) {
    gatherTypical(row, typicalShare(typicalP), minKeep, workspace);
  } else {
    gatherAbove(row, sigma, workspace);
  }
}

/**
 * Gathers the tokens whose ln w is at most so far from the mean that they weigh `share` of all, and are `atLeast` as many
 * if there are: at first as far as a sample of the row has it. As long as they fall short, the distance grows: by ½, then
 * 1, 2 …
 */
function gatherTypical(row: Row, share: number, atLeast: number, workspace: SamplerWorkspace): void {
  const { blocks, candidates } = workspace;
  const { highest, coldness } = row;
  const mean = blocks.meanExponent(row);
  const mass = blocks.weigh(row);
  const target = share * mass;
  let distance = typicalReach(row, mean, target, mass, workspace);
  for (let growth = 0.5; ; growth *= 2) {
    const cut = highest + (mean - distance) / coldness;
    const below = mean + distance;
    const limit = below < 0 ? highest + below / coldness : Number.POSITIVE_INFINITY;
    gatherAbove(row, cut, workspace, limit);
    // Said so that it ends for NaN, too.
    const some = cut > LOWEST_LOGIT || below < 0;
    if (!some || (candidates.mass >= target && candidates.count >= atLeast)) break;
    distance += growth;
  }
  candidates.mass = mass;
  candidates.meanLog = mean;
}

/** So far from the mean tokens weigh a little more than `target`, most likely. */
function typicalReach(
  row: Row,
  mean: number,
  target: number,
  mass: number,
  workspace: SamplerWorkspace,
): number {
  const { blocks, sample } = workspace;
  if (isPeaked(row, blocks)) {
    const nearest = (highestCut(row, target, LOWEST_LOGIT, workspace) - row.highest) * row.coldness;
    return Math.max(0, mean - nearest) + 1;
  }
  sample.take(row, blocks);
  return sample.reach(-mean, mass - target);
}

import type { SamplingParameters } from '../../../shared/sampling.ts';
import type { SamplerWorkspace } from '../workspace.ts';
import { gatherAbove, gatherTop, LOWEST_LOGIT, type Row } from './gather.ts';
import { sumWeights } from './row-sums.ts';
import { sigmaCut } from './top-n-sigma.ts';

/** Slack on cuts that merely save work, so that rounding never drops what the exact step would keep. */
const SLACK = 1 - 2 ** -16;

/**
 * Collects the candidates of a row: those that top-nσ and then top-k keep (min_keep of them at least), less tokens that
 * top-p or min-p are bound to drop. Leaving out the latter never changes what is kept in the end, only how many
 * candidates the steps have to look at; where top-p comes next, `candidates.mass` still counts them.
 */
export function shortlist(row: Row, parameters: SamplingParameters, workspace: SamplerWorkspace): void {
  const { topNSigma, topK, minKeep, typicalP } = parameters;
  const sigma = topNSigma > 0 ? sigmaCut(row.logits, row.highest, topNSigma) : LOWEST_LOGIT;
  // Typical sampling looks at the whole distribution.
  if (topK > 0) gatherTop(row, Math.max(topK, minKeep), sigma, workspace);
  else if (typicalP < 1) gatherAbove(row, sigma, workspace);
  else gatherLikely(row, parameters, sigma, workspace);
  // Fewer than min_keep: then that many are what is left in the end.
  if (workspace.candidates.count < minKeep) gatherTop(row, minKeep, LOWEST_LOGIT, workspace);
}

/** Where top-p and min-p come next, both keep a prefix: whatever one of them is bound to drop can be left out. */
function gatherLikely(row: Row, parameters: SamplingParameters, sigma: number, workspace: SamplerWorkspace) {
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
  gatherAbove(row, Math.max(sigma, minPCut, topPCut), workspace);
  workspace.candidates.mass = mass;
}

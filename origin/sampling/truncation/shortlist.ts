import { exponential, LOWEST_EXPONENT } from '../exponential.ts';
import type { DrawParameters } from '../parameters.ts';
import { LOWEST_LOGIT, type Row } from '../row.ts';
import type { SamplerWorkspace } from '../workspace.ts';
import { gatherAbove, gatherTop, gatherUntil } from './gather.ts';
import { typicalShare } from './typical.ts';

type NucleusParameters = Pick<DrawParameters, 'topP' | 'minP'>;

/** Slack of cuts that only save work, so that rounding removes no token that the exact step keeps. */
const SLACK = 1 - 2 ** -16;

/**
 * Collects the candidates of a row: the tokens that top-nσ and then top-k keep (at least min_keep), without
 * those that top-p, min-p or typical sampling will certainly remove. Leaving these out never changes the
 * result; it only makes the steps faster. If top-p or typical sampling comes next, `candidates.mass` still
 * includes them.
 */
export function shortlist(parameters: DrawParameters, workspace: SamplerWorkspace): void {
  const { topNSigma, topK, minKeep, typicalP, topP } = parameters;
  const sigma = topNSigma > 0 ? sigmaCut(workspace.row, topNSigma) : LOWEST_LOGIT;
  if (topK > 0) gatherTop(Math.max(topK, minKeep), sigma, workspace);
  else if (sigma > LOWEST_LOGIT && (typicalP < 1 || topP < 1)) gatherAbove(sigma, workspace);
  else if (typicalP < 1) gatherTypical(parameters, workspace);
  else if (topP < 1) gatherNucleus(parameters, workspace);
  else gatherAbove(Math.max(sigma, minPCut(parameters, workspace.row)), workspace);
  if (workspace.candidates.count < minKeep) gatherTop(minKeep, LOWEST_LOGIT, workspace);
}

/**
 * The logit below which top-nσ removes a token: max z − n·σ, with σ the population standard deviation of the
 * logits above −∞ (Tang et al., "Top-nσ: Not All Logits Are You Need", 2024). The temperature scales both
 * sides, so unscaled logits give the same set.
 */
export function sigmaCut(row: Row, n: number): number {
  const { count, sum, squares } = row.deviations();
  const mean = sum / count;
  return row.highest - n * Math.sqrt(Math.max(0, squares / count - mean * mean));
}

function minPCut({ minP }: NucleusParameters, { highest, coldness }: Row): number {
  return minP > 0 ? highest + Math.log(minP * SLACK) / coldness : LOWEST_LOGIT;
}

/** Top-p comes next, and perhaps min-p after it: both keep a prefix of the most likely tokens. */
export function gatherNucleus(parameters: NucleusParameters, workspace: SamplerWorkspace): void {
  const { row, candidates } = workspace;
  const { topP } = parameters;
  const mass = row.weigh();
  // Below this weight, all tokens of the vocabulary together weigh less than the tail that top-p removes.
  const minWeight = ((1 - topP) * mass * SLACK) / row.logits.length;
  const lowest = Math.max(minPCut(parameters, row), row.highest + Math.log(minWeight) / row.coldness);
  gatherUntil(() => candidates.mass >= topP * mass, lowest, workspace);
  candidates.mass = mass;
}

/** Typical sampling comes next: it keeps the tokens whose ln w is nearest to the mean. */
function gatherTypical({ typicalP, minKeep }: DrawParameters, workspace: SamplerWorkspace): void {
  const { row, candidates } = workspace;
  const mass = row.weigh();
  const mean = row.meanLogWeight();
  const minWeight = typicalShare(typicalP) * mass;
  gatherUntil(
    (depth) => {
      // As far above the mean as the cut is below it.
      const limit = exponential(Math.min(0, depth + 2 * mean));
      let near = 0;
      let weight = 0;
      for (let i = 0; i < candidates.count; i++) {
        if (candidates.weights[i]! > limit) continue;
        near++;
        weight += candidates.weights[i]!;
      }
      return weight >= minWeight && near >= minKeep;
    },
    row.highest + LOWEST_EXPONENT / row.coldness,
    workspace,
  );
  candidates.mass = mass;
  candidates.meanLogWeight = mean;
}

import { kthMaximum } from '../largest.ts';
import { LOWEST_LOGIT } from '../row.ts';
import type { SamplerWorkspace } from '../workspace.ts';

/** The first cut, in nats below the most likely token, and how each next cut falls. */
const FIRST_DEPTH = 3;
const GROWTH = 1.5;
const MIN_GROWTH = 0.5;

/** Makes all tokens whose logit is finite and at least `cut` the candidates. */
export function gatherAbove(cut: number, { row, candidates }: SamplerWorkspace): void {
  const { ids, weights } = candidates;
  // NaN gathers all tokens.
  const count = row.list(cut > LOWEST_LOGIT ? cut : LOWEST_LOGIT, ids);
  let mass = 0;
  for (let i = 0; i < count; i++) mass += weights[i] = row.weightOf(ids[i]!);
  candidates.set(count, mass);
}

/**
 * Gathers tokens down to a cut that falls until there are enough, or until it reaches `lowest`.
 * @param isEnough whether the candidates are enough, given how many nats the cut is below the most likely
 *   token
 */
export function gatherUntil(
  isEnough: (depth: number) => boolean,
  lowest: number,
  workspace: SamplerWorkspace,
  firstCut = workspace.row.highest - FIRST_DEPTH / workspace.row.coldness,
): void {
  const { highest, coldness } = workspace.row;
  let cut = firstCut;
  for (let depth = (highest - cut) * coldness; ; depth = GROWTH * depth + MIN_GROWTH) {
    cut = Math.min(cut, highest - depth / coldness);
    gatherAbove(Math.max(cut, lowest), workspace);
    // Also ends for NaN.
    if (!(cut > lowest) || isEnough(depth)) return;
  }
}

/**
 * Makes the `k` tokens of largest logit among those at or above `lowest` the candidates; of equal logits at
 * the boundary the lowest ids.
 */
export function gatherTop(k: number, lowest: number, workspace: SamplerWorkspace): void {
  const { row, candidates, keys } = workspace;
  const { logits, maxima } = row;
  const limit = Math.min(k, logits.length);
  // The k-th largest logit is no smaller than the k-th largest of the blocks' maxima.
  const cut = kthMaximum(Math.min(limit, maxima.length), workspace);
  gatherUntil(() => candidates.count >= limit, Math.max(lowest, LOWEST_LOGIT), workspace, cut);
  if (candidates.count <= limit) return;
  for (let i = 0; i < candidates.count; i++) keys[i] = logits[candidates.ids[i]!]!;
  candidates.keepPrefix(keys, 0, limit);
}

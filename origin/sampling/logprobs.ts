import { exponential } from './exponential.ts';
import type { SamplerWorkspace } from './workspace.ts';

/** Reported for −∞ and anything below; JSON has no infinities. */
export const LOWEST_LOGPROB = -9999;

export interface TokenLogprobs {
  readonly logprob: number;
  /** [id, logprob], best first, lower id first among equal logits. */
  readonly top: readonly (readonly [number, number])[];
}

/**
 * Logprob of a token and the `topN` best ones: log-softmax of the model's own row, z − ln Σ e^z, summed in float64 (where
 * a kernel sums blocks, in float32 within each) and rounded to float32. A token's value has the same bits in the scalar and in the list.
 * @param logits one raw row, one float32 per token id; not modified.
 * @throws InvalidLogitsError, NoCandidatesError as `argmax`.
 */
export function tokenLogprob(
  logits: Float32Array,
  id: number,
  topN: number,
  workspace: SamplerWorkspace,
): TokenLogprobs {
  const highest = logits[workspace.blocks.argmax(logits)]!;
  const normalizer = highest + Math.log(sumOfExponentials(logits, highest, workspace));
  const top: [number, number][] = [];
  for (const best of topIds(logits, topN, workspace)) top.push([best, logprobOf(logits[best]!, normalizer)]);
  return { logprob: logprobOf(logits[id]!, normalizer), top };
}

function sumOfExponentials(logits: Float32Array, highest: number, { blocks }: SamplerWorkspace): number {
  if (blocks.weighs) return blocks.weigh({ logits, highest, coldness: 1 });
  const size = logits.length;
  let sum = 0;
  for (let i = 0; i < size; i++) sum += exponential(logits[i]! - highest);
  return sum;
}

function logprobOf(logit: number, normalizer: number): number {
  return Math.max(LOWEST_LOGPROB, Math.fround(logit - normalizer));
}

/** Ids of the largest logits, by insertion into a short sorted list. */
function topIds(logits: Float32Array, topN: number, workspace: SamplerWorkspace): Int32Array {
  const { order: best, blocks } = workspace;
  const { maxima, blockSize } = blocks;
  const size = logits.length;
  const limit = Math.min(topN, size);
  let listed = 0;
  let threshold = Number.NEGATIVE_INFINITY;
  if (limit === 0) return best.subarray(0, 0);
  for (let start = 0, block = 0; start < size; start += blockSize, block++) {
    if (listed === limit && maxima[block]! <= threshold) continue;
    const end = Math.min(start + blockSize, size);
    for (let id = start; id < end; id++) {
      const logit = logits[id]!;
      if (listed === limit && logit <= threshold) continue;
      let rank = listed < limit ? listed++ : limit - 1;
      for (; rank > 0 && logits[best[rank - 1]!]! < logit; rank--) best[rank] = best[rank - 1]!;
      best[rank] = id;
      threshold = logits[best[listed - 1]!]!;
    }
  }
  return best.subarray(0, listed);
}

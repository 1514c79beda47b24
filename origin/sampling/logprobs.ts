import { LOWEST_LOGPROB } from '../../shared/logprob.ts';
import { exponential } from './exponential.ts';
import type { SamplerWorkspace } from './workspace.ts';

export interface TokenLogprobs {
  readonly logprob: number;
  /** [id, logprob], best first, lower id first among equal logits. */
  readonly top: readonly (readonly [number, number])[];
}

/**
 * Logprob of a token and the `topN` best ones: log-softmax of the model's own row, z − ln Σ e^z, summed in float64 (where
 * a kernel sums blocks, in float32 within each) and rounded to float32. A token's value has the same bits in the scalar and in the list.
 * @param logits one raw row, one float32 per token id; not modified.
 * @param begun whether the workspace's blocks speak of this very row already, as it is.
 * @throws InvalidLogitsError, NoCandidatesError as `argmax`.
 */
export function tokenLogprob(
  logits: Float32Array,
  id: number,
  topN: number,
  workspace: SamplerWorkspace,
  begun = false,
): TokenLogprobs {
  const { blocks } = workspace;
  if (!begun) blocks.argmax(logits);
  const { highest } = blocks;
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

/** Ids of the largest logits, in a workspace's list. */
function topIds(logits: Float32Array, topN: number, { order: best, blocks }: SamplerWorkspace): Int32Array {
  const { maxima, blockSize } = blocks;
  const limit = Math.min(topN, logits.length);
  if (limit === 0) return best.subarray(0, 0);
  let cut = Number.NEGATIVE_INFINITY;
  if (limit < maxima.length) {
    // As many logits are at least as large as the least of the blocks' `limit` largest maxima.
    insertLargest(maxima, 0, maxima.length, best, 0, limit);
    cut = maxima[best[limit - 1]!]!;
  }
  let listed = 0;
  for (let start = 0, block = 0; start < logits.length; start += blockSize, block++) {
    if (maxima[block]! < cut) continue;
    listed = insertLargest(logits, start, Math.min(start + blockSize, logits.length), best, listed, limit);
  }
  return best.subarray(0, listed);
}

/** Inserts the indices of the values from `start` to `end` into a list of the `limit` largest, best first; its length. */
function insertLargest(
  values: Float32Array,
  start: number,
  end: number,
  best: Int32Array,
  listed: number,
  limit: number,
): number {
  let threshold = listed === limit ? values[best[limit - 1]!]! : Number.NEGATIVE_INFINITY;
  for (let i = start; i < end; i++) {
    const value = values[i]!;
    if (listed === limit && value <= threshold) continue;
    let rank = listed < limit ? listed++ : limit - 1;
    for (; rank > 0 && values[best[rank - 1]!]! < value; rank--) best[rank] = best[rank - 1]!;
    best[rank] = i;
    threshold = values[best[listed - 1]!]!;
  }
  return listed;
}

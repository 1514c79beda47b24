import { exponential } from '../exponential.ts';
import type { SamplerWorkspace } from '../workspace.ts';
import { heapify, siftDown } from './heap.ts';

/** A row of processed logits about to be truncated or drawn from; one object per sampler, refilled for each token. */
export interface Row {
  logits: Float32Array;
  /** The largest logit. */
  highest: number;
  /** 1 / temperature. */
  coldness: number;
}

/** Below every finite float32, above −∞: the cut that drops forbidden tokens only. */
export const LOWEST_LOGIT = -3.4028234663852886e38;

/** Fills the workspace's candidates with all tokens whose logit is finite, at least `cut` and below `limit`. */
export function gatherAbove(
  row: Row,
  cut: number,
  workspace: SamplerWorkspace,
  limit = Number.POSITIVE_INFINITY,
): void {
  const { candidates, blocks } = workspace;
  const { ids, weights } = candidates;
  const count = blocks.list(row, Math.max(cut, LOWEST_LOGIT), ids, weights, limit);
  let mass = 0;
  for (let i = 0; i < count; i++) mass += weights[i]!;
  candidates.set(count, mass);
}

/**
 * Fills the workspace's candidates with the `k` tokens of largest logit among those at or above `cut`; of equal logits
 * at the boundary the lowest ids.
 *
 * A heap of the k largest logits so far gives a rising threshold; the few tokens that passed it when they were seen
 * are listed in order of ids and filtered by its final value. One comparison for nearly every token, or for those alone
 * that reach a first threshold: the k-th largest of the blocks' maxima is no larger than the k-th largest logit.
 */
export function gatherTop(row: Row, k: number, cut: number, workspace: SamplerWorkspace): void {
  const { logits, highest, coldness } = row;
  const { keys: heap, order: listed, blocks } = workspace;
  const { maxima } = blocks;
  const { ids, weights } = workspace.candidates;
  const limit = Math.min(k, logits.length);
  let lowest = Math.max(cut, LOWEST_LOGIT);
  if (limit < maxima.length) {
    listPassing(maxima, null, maxima.length, limit, Number.NEGATIVE_INFINITY, heap, listed);
    lowest = Math.max(lowest, heap[0]!);
  }
  const found = blocks.weighs
    ? listPassing(logits, listed, blocks.list(row, lowest, listed, null), limit, lowest, heap, listed)
    : listPassing(logits, null, logits.length, limit, lowest, heap, listed);
  const threshold = found < limit ? LOWEST_LOGIT : heap[0]!;
  let equals = found < limit ? limit : limit - countAbove(heap, limit, threshold);
  let count = 0;
  let mass = 0;
  for (let i = 0; i < found; i++) {
    const id = listed[i]!;
    const logit = logits[id]!;
    if (logit < threshold || (logit === threshold && equals-- <= 0)) continue;
    const weight = exponential((logit - highest) * coldness);
    ids[count] = id;
    weights[count++] = weight;
    mass += weight;
  }
  workspace.candidates.set(count, mass);
}

/**
 * Of `count` tokens lists those, in the same order, that were among the `limit` best at or above `cut` when their turn
 * came; leaves the `limit` largest logits in the heap, if there are that many. Returns the list's length.
 * @param ids the tokens, null for all up to `count`; may be the list
 */
function listPassing(
  logits: Float32Array,
  ids: Int32Array | null,
  count: number,
  limit: number,
  cut: number,
  heap: Float64Array,
  listed: Int32Array,
): number {
  let found = 0;
  let i = 0;
  for (; i < count && found < limit; i++) {
    const id = ids === null ? i : ids[i]!;
    if (logits[id]! < cut) continue;
    heap[found] = logits[id]!;
    listed[found++] = id;
  }
  if (found < limit) return found;
  let threshold = heapify(heap, limit);
  for (; i < count; i++) {
    const id = ids === null ? i : ids[i]!;
    const logit = logits[id]!;
    if (logit <= threshold) continue;
    heap[0] = logit;
    siftDown(heap, limit, 0);
    threshold = heap[0]!;
    listed[found++] = id;
  }
  return found;
}

function countAbove(values: Float64Array, size: number, threshold: number): number {
  let above = 0;
  for (let i = 0; i < size; i++) if (values[i]! > threshold) above++;
  return above;
}

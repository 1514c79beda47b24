import { exponential } from '../exponential.ts';
import type { SamplerWorkspace } from '../workspace.ts';
import { heapify, siftDown } from './heap.ts';
import { kthLargest } from './kth-largest.ts';

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
 */
export function gatherTop(row: Row, k: number, cut: number, workspace: SamplerWorkspace): void {
  const { logits, highest, coldness } = row;
  const { keys, order: listed, blocks } = workspace;
  const { ids, weights } = workspace.candidates;
  const limit = Math.min(k, logits.length);
  const lowest = Math.max(cut, LOWEST_LOGIT);
  const found = blocks.weighs
    ? listByBlocks(row, limit, lowest, workspace)
    : listPassing(logits, limit, lowest, keys, listed);
  const all = found < limit;
  let threshold = LOWEST_LOGIT;
  if (!all) threshold = blocks.weighs ? kthLargest(keys, found, limit) : keys[0]!;
  let equals = all ? limit : limit - countAbove(keys, blocks.weighs ? found : limit, threshold);
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
 * Lists the tokens at or above `cut`, or fewer, but the `limit` best of them in any case: the limit-th largest of the
 * blocks' maxima is no larger than the limit-th largest logit. Leaves their logits in the keys; the list's length.
 */
function listByBlocks(
  row: Row,
  limit: number,
  cut: number,
  { blocks, keys, order }: SamplerWorkspace,
): number {
  const { maxima } = blocks;
  let lowest = cut;
  if (limit < maxima.length) {
    keys.set(maxima);
    lowest = Math.max(lowest, kthLargest(keys, maxima.length, limit));
  }
  const found = blocks.list(row, lowest, order, null);
  for (let i = 0; i < found; i++) keys[i] = row.logits[order[i]!]!;
  return found;
}

/**
 * Lists the tokens that were among the `limit` best at or above `cut` when their turn came; leaves the `limit` largest
 * logits in the heap, if there are that many. The heap gives a rising threshold: one comparison for nearly every token.
 * Returns the list's length.
 */
function listPassing(
  logits: Float32Array,
  limit: number,
  cut: number,
  heap: Float64Array,
  listed: Int32Array,
): number {
  const size = logits.length;
  let found = 0;
  let id = 0;
  for (; id < size && found < limit; id++) {
    if (logits[id]! < cut) continue;
    heap[found] = logits[id]!;
    listed[found++] = id;
  }
  if (found < limit) return found;
  let threshold = heapify(heap, limit);
  for (; id < size; id++) {
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

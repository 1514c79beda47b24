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

/** The maxima of a single block of which nothing is known. */
const UNKNOWN = Float32Array.of(Number.POSITIVE_INFINITY);

/** Fills the workspace's candidates with all tokens whose logit is finite and at least `cut`. */
export function gatherAbove(row: Row, cut: number, workspace: SamplerWorkspace): void {
  const { logits, highest, coldness } = row;
  const { ids, weights } = workspace.candidates;
  const { maxima, blockSize } = workspace.blocks;
  const lowest = Math.max(cut, LOWEST_LOGIT);
  const size = logits.length;
  let count = 0;
  let mass = 0;
  for (let start = 0, block = 0; start < size; start += blockSize, block++) {
    if (maxima[block]! < lowest) continue;
    const end = Math.min(start + blockSize, size);
    for (let id = start; id < end; id++) {
      const logit = logits[id]!;
      if (logit < lowest) continue;
      const weight = exponential((logit - highest) * coldness);
      ids[count] = id;
      weights[count++] = weight;
      mass += weight;
    }
  }
  workspace.candidates.set(count, mass);
}

/**
 * Fills the workspace's candidates with the `k` tokens of largest logit among those at or above `cut`; of equal logits
 * at the boundary the lowest ids.
 *
 * A heap of the k largest logits so far gives a rising threshold; the few tokens that passed it when they were seen
 * are listed in order of ids and filtered by its final value. One comparison for nearly every token, or for nearly
 * every block: the k-th largest of the blocks' maxima is no larger than the k-th largest logit, and so a first threshold.
 */
export function gatherTop(row: Row, k: number, cut: number, workspace: SamplerWorkspace): void {
  const { logits, highest, coldness } = row;
  const { keys: heap, order: listed, blocks } = workspace;
  const { maxima, blockSize } = blocks;
  const { ids, weights } = workspace.candidates;
  const limit = Math.min(k, logits.length);
  let lowest = Math.max(cut, LOWEST_LOGIT);
  if (limit < maxima.length) {
    listPassing(maxima, UNKNOWN, maxima.length, limit, Number.NEGATIVE_INFINITY, heap, listed);
    lowest = Math.max(lowest, heap[0]!);
  }
  const found = listPassing(logits, maxima, blockSize, limit, lowest, heap, listed);
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
 * Lists, in ascending order, the ids that were among the `limit` best at or above `cut` when their turn came; leaves
 * the `limit` largest logits in the heap, if there are that many. Returns the list's length.
 */
function listPassing(
  logits: Float32Array,
  maxima: Float32Array,
  blockSize: number,
  limit: number,
  cut: number,
  heap: Float64Array,
  listed: Int32Array,
): number {
  const size = logits.length;
  let found = 0;
  let threshold = Number.NEGATIVE_INFINITY;
  for (let start = 0, block = 0; start < size; start += blockSize, block++) {
    const highest = maxima[block]!;
    if (highest < cut || (found >= limit && highest <= threshold)) continue;
    const end = Math.min(start + blockSize, size);
    let id = start;
    for (; id < end && found < limit; id++) {
      if (logits[id]! < cut) continue;
      heap[found] = logits[id]!;
      listed[found++] = id;
      if (found === limit) threshold = heapify(heap, limit);
    }
    for (; id < end; id++) {
      const logit = logits[id]!;
      if (logit <= threshold) continue;
      heap[0] = logit;
      siftDown(heap, limit, 0);
      threshold = heap[0]!;
      listed[found++] = id;
    }
  }
  return found;
}

function countAbove(values: Float64Array, size: number, threshold: number): number {
  let above = 0;
  for (let i = 0; i < size; i++) if (values[i]! > threshold) above++;
  return above;
}

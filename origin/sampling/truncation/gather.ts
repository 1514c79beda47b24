import { exponential } from '../exponential.ts';
import type { SamplerWorkspace } from '../workspace.ts';
import { siftDown } from './heap.ts';

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

/** Fills the workspace's candidates with all tokens whose logit is finite and at least `cut`. */
export function gatherAbove(row: Row, cut: number, workspace: SamplerWorkspace): void {
  const { logits, highest, coldness } = row;
  const { ids, weights } = workspace.candidates;
  const lowest = Math.max(cut, LOWEST_LOGIT);
  const size = logits.length;
  let count = 0;
  let mass = 0;
  for (let id = 0; id < size; id++) {
    const logit = logits[id]!;
    if (logit < lowest) continue;
    const weight = exponential((logit - highest) * coldness);
    ids[count] = id;
    weights[count++] = weight;
    mass += weight;
  }
  workspace.candidates.set(count, mass);
}

/**
 * Fills the workspace's candidates with the `k` tokens of largest logit among those at or above `cut`; of equal logits
 * at the boundary the lowest ids.
 *
 * A heap of the k largest logits so far gives a rising threshold; the few tokens that passed it when they were seen
 * are listed in order of ids and filtered by its final value. One comparison for nearly every token.
 */
export function gatherTop(row: Row, k: number, cut: number, workspace: SamplerWorkspace): void {
  const { logits, highest, coldness } = row;
  const { keys: heap, order: listed } = workspace;
  const { ids, weights } = workspace.candidates;
  const limit = Math.min(k, logits.length);
  const found = listPassing(logits, limit, Math.max(cut, LOWEST_LOGIT), heap, listed);
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
  for (let parent = (limit >>> 1) - 1; parent >= 0; parent--) siftDown(heap, limit, parent);
  let threshold = heap[0]!;
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

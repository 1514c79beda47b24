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
  const { candidates } = workspace;
  const lowest = Math.max(cut, LOWEST_LOGIT);
  candidates.clear();
  for (let id = 0; id < logits.length; id++) {
    const logit = logits[id]!;
    if (logit >= lowest) candidates.add(id, exponential((logit - highest) * coldness));
  }
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
  const { candidates, keys: heap, order: passed } = workspace;
  const limit = Math.min(k, logits.length);
  let threshold = Math.max(cut, LOWEST_LOGIT);
  let id = 0;
  let listed = 0;
  for (; id < logits.length && listed < limit; id++) {
    if (logits[id]! >= threshold) {
      heap[listed] = logits[id]!;
      passed[listed++] = id;
    }
  }
  const full = listed === limit;
  if (full) {
    for (let parent = (limit >>> 1) - 1; parent >= 0; parent--) siftDown(heap, limit, parent);
    threshold = heap[0]!;
    for (; id < logits.length; id++) {
      const logit = logits[id]!;
      if (logit > threshold) {
        heap[0] = logit;
        siftDown(heap, limit, 0);
        threshold = heap[0]!;
        passed[listed++] = id;
      }
    }
  }
  let equals = full ? limit - countAbove(heap, limit, threshold) : listed;
  candidates.clear();
  for (let i = 0; i < listed; i++) {
    const logit = logits[passed[i]!]!;
    if (logit < threshold || (logit === threshold && equals-- <= 0)) continue;
    candidates.add(passed[i]!, exponential((logit - highest) * coldness));
  }
}

function countAbove(values: Float64Array, size: number, threshold: number): number {
  let above = 0;
  for (let i = 0; i < size; i++) if (values[i]! > threshold) above++;
  return above;
}

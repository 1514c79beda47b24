import type { SamplerWorkspace } from './workspace.ts';

/** Up to this many of the largest numbers are found faster by insertion than by selection. */
const MAX_INSERTED = 64;

/**
 * Inserts the indices of the values from `start` to `end` into a list of the `limit` largest, best first.
 * @param listed length of the list so far
 * @param cut smaller values are left out
 * @returns its new length
 */
export function insertLargest(
  values: Float32Array,
  start: number,
  end: number,
  best: Int32Array,
  listed: number,
  limit: number,
  cut = Number.NEGATIVE_INFINITY,
): number {
  let threshold = listed === limit ? values[best[limit - 1]!]! : Number.NEGATIVE_INFINITY;
  for (let i = start; i < end; i++) {
    const value = values[i]!;
    if (value < cut || (listed === limit && value <= threshold)) continue;
    let rank = listed < limit ? listed++ : limit - 1;
    for (; rank > 0 && values[best[rank - 1]!]! < value; rank--) best[rank] = best[rank - 1]!;
    best[rank] = i;
    threshold = values[best[listed - 1]!]!;
  }
  return listed;
}

/** Returns the k-th largest of the row's block maxima. */
export function kthMaximum(k: number, { row: { maxima }, candidates, keys, ids }: SamplerWorkspace): number {
  if (k <= MAX_INSERTED) {
    insertLargest(maxima, 0, maxima.length, ids, 0, k);
    return maxima[ids[k - 1]!]!;
  }
  // Ten times faster than `set`, which converts each number.
  for (let block = 0; block < maxima.length; block++) keys[block] = maxima[block]!;
  return candidates.kthLargest(keys, maxima.length, k);
}

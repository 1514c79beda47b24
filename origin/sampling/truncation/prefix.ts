import type { BoundarySearch } from './boundary-search.ts';
import type { Candidates } from './candidates.ts';

/**
 * Keeps the shortest prefix of the candidates, largest key first and lower id first among equal keys, whose
 * probabilities sum to at least `share` and which has at least `atLeast` members; all of them when none does.
 * @param keys one per candidate, in 0..1; may be the candidates' own weights.
 * @param atLeast 1 or more.
 */
export function keepPrefix(
  candidates: Candidates,
  keys: Float64Array,
  share: number,
  atLeast: number,
  search: BoundarySearch,
): void {
  const { weights, ids, count } = candidates;
  const target = share * candidates.mass;
  search.run(keys, target, atLeast);
  const { boundary } = search;
  let kept = search.betterCount;
  let sum = search.betterWeight;
  let left = 0;
  let mass = 0;
  for (let i = 0; i < count; i++) {
    const key = keys[i]!;
    if (key < boundary) continue;
    const weight = weights[i]!;
    if (key === boundary) {
      // Equal keys: the lowest ids, as many as it takes.
      if (kept >= atLeast && sum >= target) continue;
      kept++;
      sum += weight;
    }
    ids[left] = ids[i]!;
    weights[left++] = weight;
    mass += weight;
  }
  candidates.set(left, mass);
}

import type { BoundarySearch } from './boundary-search.ts';
import type { Candidates } from './candidates.ts';
import { keepPrefix } from './prefix.ts';

/** Keeps the candidates of at least this weight, or the `atLeast` heaviest where those are fewer. */
export function keepAbove(
  candidates: Candidates,
  cut: number,
  atLeast: number,
  search: BoundarySearch,
): void {
  const { weights, ids, count } = candidates;
  let reaching = 0;
  for (let i = 0; i < count; i++) if (weights[i]! >= cut) reaching++;
  if (reaching < atLeast) {
    keepPrefix(candidates, weights, 0, atLeast, search);
    return;
  }
  let left = 0;
  let mass = 0;
  for (let i = 0; i < count; i++) {
    const weight = weights[i]!;
    if (weight < cut) continue;
    ids[left] = ids[i]!;
    weights[left++] = weight;
    mass += weight;
  }
  candidates.set(left, mass);
}

import type { Candidates } from './candidates.ts';

/**
 * Keeps the shortest prefix of the candidates, largest key first and lower id first among equal keys, whose
 * probabilities sum to at least `share` and which has at least `atLeast` members; all of them when none does.
 *
 * No sort: a quickselect that weighs its parts finds the key at the boundary in expected linear time, however much is
 * kept. Equal keys are one part, so that flat distributions cost no more.
 * @param keys one per candidate; may be the candidates' own weights.
 * @param atLeast 1 or more.
 * @param order working memory, at least as long as the candidates are many.
 */
export function keepPrefix(
  candidates: Candidates,
  keys: Float64Array,
  share: number,
  atLeast: number,
  order: Int32Array,
): void {
  const { weights, ids, count } = candidates;
  const target = share * candidates.mass;
  const boundary = boundaryKey(candidates, keys, target, atLeast, order);
  let kept = 0;
  let sum = 0;
  for (let i = 0; i < count; i++) {
    if (keys[i]! > boundary) {
      kept++;
      sum += weights[i]!;
    }
  }
  candidates.clear();
  for (let i = 0; i < count; i++) {
    const key = keys[i]!;
    if (key < boundary) continue;
    if (key === boundary) {
      if (kept >= atLeast && sum >= target) continue;
      kept++;
      sum += weights[i]!;
    }
    candidates.add(ids[i]!, weights[i]!);
  }
}

/** The largest key such that the candidates with it and above reach the target; −∞ when nothing does. */
function boundaryKey(
  candidates: Candidates,
  keys: Float64Array,
  target: number,
  atLeast: number,
  order: Int32Array,
): number {
  const { weights, count } = candidates;
  for (let i = 0; i < count; i++) order[i] = i;
  let from = 0;
  let to = count;
  let sum = 0;
  while (from < to) {
    const pivot = medianOfThree(keys[order[from]!]!, keys[order[(from + to) >>> 1]!]!, keys[order[to - 1]!]!);
    // Three parts: [from, above) has larger keys, [above, i) equal ones, [below, to) smaller ones.
    let above = from;
    let below = to;
    let weightAbove = 0;
    let weightEqual = 0;
    for (let i = from; i < below; ) {
      const candidate = order[i]!;
      const key = keys[candidate]!;
      if (key > pivot) {
        weightAbove += weights[candidate]!;
        order[i++] = order[above]!;
        order[above++] = candidate;
      } else if (key < pivot) {
        order[i] = order[--below]!;
        order[below] = candidate;
      } else {
        weightEqual += weights[candidate]!;
        i++;
      }
    }
    if (above >= atLeast && sum + weightAbove >= target) {
      // Reached without the pivot's part. Nothing before `from` had reached it, so the boundary is in [from, above).
      to = above;
    } else {
      sum += weightAbove + weightEqual;
      if (below >= atLeast && sum >= target) return pivot;
      from = below;
    }
  }
  return Number.NEGATIVE_INFINITY;
}

function medianOfThree(a: number, b: number, c: number): number {
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}

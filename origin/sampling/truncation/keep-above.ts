import type { Candidates } from './candidates.ts';
import { keepPrefix } from './prefix.ts';

/** Keeps the candidates of at least this weight, or the `atLeast` heaviest where those are fewer. */
export function keepAbove(candidates: Candidates, cut: number, atLeast: number, order: Int32Array): void {
  const { weights, ids, count } = candidates;
  let reaching = 0;
  for (let i = 0; i < count; i++) if (weights[i]! >= cut) reaching++;
  if (reaching < atLeast) {
    keepPrefix(candidates, weights, 0, atLeast, order);
    return;
  }
  candidates.clear();
  for (let i = 0; i < count; i++) if (weights[i]! >= cut) candidates.add(ids[i]!, weights[i]!);
}

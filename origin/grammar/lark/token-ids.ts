import { mergeRanges } from '../automaton/code-points.ts';
import { MAX_TOKEN_ID } from '../automaton/token-path.ts';

/** The ranges [lo0, hi0, …] of `<[1,3-5]>`, all others for `<[^1]>`, all for `<[*]>`; null if malformed. */
export function tokenIds(text: string): number[] | null {
  if (text === '<[*]>') return [0, MAX_TOKEN_ID];
  const list = /^<\[(\^?)(\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)\]>$/.exec(text);
  if (list === null) return null;
  const sorted = list[2]!
    .split(',')
    .map((range) => range.split('-').map(Number))
    .map(([lo, hi = lo]): [number, number] => [lo!, hi!])
    .sort((a, b) => a[0] - b[0]);
  if (sorted.some(([lo, hi]) => hi < lo || hi > MAX_TOKEN_ID)) return null;
  const merged = mergeRanges(sorted);
  if (list[1] !== '^') return merged;
  const gaps = [0, ...merged.map((id, i) => (i % 2 === 0 ? id - 1 : id + 1)), MAX_TOKEN_ID];
  return gaps.filter((_, i) => gaps[i - (i % 2)]! <= gaps[i - (i % 2) + 1]!);
}

/** A set of code points: sorted, disjoint and non-adjacent inclusive ranges as [lo0, hi0, lo1, hi1, …]. */
export type CodePoints = readonly number[];

type Range = readonly [first: number, last: number];

/** Every Unicode scalar value. Surrogates are excluded because UTF-8 cannot encode them. */
export const ALL_CODE_POINTS: CodePoints = [0, 0xd7ff, 0xe000, 0x10ffff];

/** Sorts and merges ranges. Drops surrogates and values above U+10FFFF. */
export function codePoints(ranges: readonly Range[]): CodePoints {
  const sorted = ranges.filter(([lo, hi]) => lo <= hi).sort((a, b) => a[0] - b[0]);
  return intersectCodePoints(mergeRanges(sorted), ALL_CODE_POINTS);
}

/** Merges sorted inclusive ranges that touch. */
export function mergeRanges(sorted: readonly Range[]): number[] {
  const merged: number[] = [];
  for (const [lo, hi] of sorted) {
    const last = merged.at(-1);
    if (last !== undefined && lo <= last + 1) merged[merged.length - 1] = Math.max(last, hi);
    else merged.push(lo, hi);
  }
  return merged;
}

export function intersectCodePoints(a: CodePoints, b: CodePoints): CodePoints {
  const out: number[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    const lo = Math.max(a[i]!, b[j]!);
    const hi = Math.min(a[i + 1]!, b[j + 1]!);
    if (lo <= hi) out.push(lo, hi);
    if (a[i + 1]! < b[j + 1]!) i += 2;
    else j += 2;
  }
  return out;
}

export function complementCodePoints(set: CodePoints): CodePoints {
  const gaps: [number, number][] = [];
  let next = 0;
  for (const [lo, hi] of rangesOf(set)) {
    gaps.push([next, lo - 1]);
    next = hi + 1;
  }
  gaps.push([next, 0x10ffff]);
  return codePoints(gaps);
}

export function rangesOf(set: CodePoints): [number, number][] {
  const out: [number, number][] = [];
  for (let i = 0; i < set.length; i += 2) out.push([set[i]!, set[i + 1]!]);
  return out;
}

/** The k-th largest of the first `count` numbers, at least k, which it reorders: a quickselect. Equal numbers are one part. */
export function kthLargest(values: Float64Array, count: number, k: number): number {
  let from = 0;
  let to = count;
  for (;;) {
    const pivot = medianOfThree(values[from]!, values[(from + to) >>> 1]!, values[to - 1]!);
    // Three parts: [from, above) is larger, [above, i) equal, [below, to) smaller.
    let above = from;
    let below = to;
    for (let i = from; i < below; ) {
      const value = values[i]!;
      if (value > pivot) {
        values[i++] = values[above]!;
        values[above++] = value;
      } else if (value < pivot) {
        values[i] = values[--below]!;
        values[below] = value;
      } else i++;
    }
    if (k <= above) to = above;
    else if (k <= below) return pivot;
    else from = below;
  }
}

export function medianOfThree(a: number, b: number, c: number): number {
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}

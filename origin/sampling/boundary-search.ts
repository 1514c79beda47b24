/**
 * Finds where a prefix of items ordered by descending key ends, without sorting them: a quickselect that
 * weighs its parts. Takes linear time on average. Equal keys form one part, so flat distributions cost no
 * more. One object serves all searches; results are valid until the next `run`.
 */
export class BoundarySearch {
  /** The largest key such that the items with it and above reach the target; −∞ if none does. */
  boundary = 0;
  /** How many items have larger keys than the boundary, and their weight. */
  aboveCount = 0;
  aboveWeight = 0;
  readonly #order: Int32Array;

  constructor(capacity: number) {
    this.#order = new Int32Array(capacity);
  }

  /**
   * Searches the shortest prefix that weighs at least `minWeight` and has at least `minCount` items, 1 or
   * more.
   * @param count how many of the keys and weights are items
   */
  run(keys: Float64Array, weights: Float64Array, count: number, minWeight: number, minCount: number): void {
    const order = this.#order;
    for (let i = 0; i < count; i++) order[i] = i;
    let from = 0;
    let to = count;
    this.aboveCount = 0;
    this.aboveWeight = 0;
    while (from < to) {
      const pivot = medianOfThree(
        keys[order[from]!]!,
        keys[order[(from + to) >>> 1]!]!,
        keys[order[to - 1]!]!,
      );
      // Three parts: [from, above) has larger keys, [above, i) equal ones, [below, to) smaller ones.
      let above = from;
      let below = to;
      let weightAbove = 0;
      let weightEqual = 0;
      for (let i = from; i < below; ) {
        const item = order[i]!;
        const key = keys[item]!;
        if (key > pivot) {
          weightAbove += weights[item]!;
          order[i++] = order[above]!;
          order[above++] = item;
        } else if (key < pivot) {
          order[i] = order[--below]!;
          order[below] = item;
        } else {
          weightEqual += weights[item]!;
          i++;
        }
      }
      if (above >= minCount && this.aboveWeight + weightAbove >= minWeight) {
        to = above;
        continue;
      }
      this.aboveWeight += weightAbove;
      this.aboveCount = above;
      this.boundary = pivot;
      if (below >= minCount && this.aboveWeight + weightEqual >= minWeight) return;
      this.aboveWeight += weightEqual;
      this.aboveCount = below;
      from = below;
    }
    this.boundary = Number.NEGATIVE_INFINITY;
  }
}

function medianOfThree(a: number, b: number, c: number): number {
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}

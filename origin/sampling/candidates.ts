import { BoundarySearch } from './boundary-search.ts';

/**
 * Probabilities closer than this count as equal at a boundary ("p ≥ min_p · max p", "sum ≥ top_p"). It is the
 * relative rounding of a probability computed from float32 logits of magnitude 16, so a finer cut would be
 * arbitrary.
 */
export const PROBABILITY_RESOLUTION = 2 ** -20;

/** The tokens that can still be drawn, in ascending order of ids, with weights by probability. */
export class Candidates {
  count = 0;
  readonly ids: Int32Array;
  /** e^((z − max z) / T). */
  readonly weights: Float64Array;
  /**
   * The divisor that turns weights into probabilities. Usually their sum; larger while it includes tokens
   * that are left out because a later truncation is known to remove them.
   */
  mass = 0;
  /** Σ p ln w over all tokens that `mass` includes, if known; else NaN. */
  meanLogWeight = Number.NaN;
  readonly #search: BoundarySearch;

  constructor(capacity: number) {
    this.ids = new Int32Array(capacity);
    this.weights = new Float64Array(capacity);
    this.#search = new BoundarySearch(capacity);
  }

  /** Makes the first `count` entries, which the caller has written, the candidates; `mass` is their sum. */
  set(count: number, mass: number): void {
    this.count = count;
    this.mass = mass;
    this.meanLogWeight = Number.NaN;
  }

  /**
   * Sorts the candidates by key, largest first, and equal keys by id. Keeps the shortest prefix that has at
   * least `minCount` members and a probability of at least `share`; all of them if no prefix does.
   * @param keys one per candidate; may be the candidates' own weights
   * @param minCount 1 or more
   */
  keepPrefix(keys: Float64Array, share: number, minCount: number): void {
    const { weights, count } = this;
    const search = this.#search;
    const minWeight = share * this.mass;
    search.run(keys, weights, count, minWeight, minCount);
    const { boundary } = search;
    let included = search.aboveCount;
    let weight = search.aboveWeight;
    let mass = 0;
    let kept = 0;
    for (let i = 0; i < count; i++) {
      const key = keys[i]!;
      if (key < boundary) continue;
      if (key === boundary) {
        if (included >= minCount && weight >= minWeight) continue;
        included++;
        weight += weights[i]!;
      }
      mass += this.#move(i, kept++);
    }
    this.set(kept, mass);
  }

  /** Keeps the candidates of at least this weight, or the `minCount` heaviest if those are more. */
  keepAbove(minWeight: number, minCount: number): void {
    const { weights, count } = this;
    let reaching = 0;
    for (let i = 0; i < count; i++) if (weights[i]! >= minWeight) reaching++;
    if (reaching < minCount) this.keepPrefix(weights, 0, minCount);
    else this.keepIf((weight) => weight >= minWeight);
  }

  keepIf(keeps: (weight: number, index: number) => boolean): void {
    let mass = 0;
    let kept = 0;
    for (let i = 0; i < this.count; i++) if (keeps(this.weights[i]!, i)) mass += this.#move(i, kept++);
    this.set(kept, mass);
  }

  /** Moves a candidate to an index that is not greater; returns its weight. */
  #move(from: number, to: number): number {
    this.ids[to] = this.ids[from]!;
    return (this.weights[to] = this.weights[from]!);
  }

  /** The k-th largest of the first `count` numbers. */
  kthLargest(numbers: Float64Array, count: number, k: number): number {
    this.#search.run(numbers, numbers, count, Number.NEGATIVE_INFINITY, k);
    return this.#search.boundary;
  }

  /** The largest weight. */
  maxWeight(): number {
    let max = 0;
    for (let i = 0; i < this.count; i++) if (this.weights[i]! > max) max = this.weights[i]!;
    return max;
  }

  /** Index of the candidate for a uniform number in [0, 1): inverse CDF in ascending order of ids. */
  draw(uniform: number): number {
    // The weight of a single candidate may have underflowed to zero: XTC keeps the least likely of those it
    // considers.
    if (this.count === 1) return 0;
    const target = uniform * this.mass;
    let sum = 0;
    for (let i = 0; i < this.count; i++) {
      sum += this.weights[i]!;
      if (sum > target) return i;
    }
    throw new RangeError(`uniform number ${uniform} is not below 1`);
  }
}

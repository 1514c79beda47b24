/**
 * Probabilities closer than this count as equal where a cut falls on a boundary ("p ≥ min_p · max p", "sum ≥ top_p").
 * It is the relative rounding of a probability that float32 logits of magnitude 16 bring along, so a cut finer than
 * that would fall by accident.
 */
export const PROBABILITY_RESOLUTION = 2 ** -20;

/** The tokens still in play, in ascending order of ids, with weights proportional to their probabilities. */
export class Candidates {
  count = 0;
  readonly ids: Int32Array;
  /** e^((z − max z) / T). */
  readonly weights: Float64Array;
  /**
   * What the weights are to be divided by to give probabilities. Usually their sum; larger while tokens are left out
   * that a later truncation is known to drop anyway.
   */
  mass = 0;
  /** Σ p ln w over all that `mass` counts, where it is known beforehand; else NaN. */
  meanLog = Number.NaN;

  constructor(capacity: number) {
    this.ids = new Int32Array(capacity);
    this.weights = new Float64Array(capacity);
  }

  /** Makes the first `count` entries, written into `ids` and `weights` by the caller, the set; `mass` is their sum. */
  set(count: number, mass: number): void {
    this.count = count;
    this.mass = mass;
    this.meanLog = Number.NaN;
  }

  /** The largest weight. */
  peak(): number {
    let peak = 0;
    for (let i = 0; i < this.count; i++) if (this.weights[i]! > peak) peak = this.weights[i]!;
    return peak;
  }

  /** Index of the candidate that a uniform number in [0, 1) falls on: inverse CDF in ascending order of ids. */
  draw(uniform: number): number {
    // A lone candidate needs no number, and its weight may have underflowed to zero (XTC spares the least likely).
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

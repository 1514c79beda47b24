import { BLOCK_SIZE, blocksOf, type SparseRow } from '../model/sparse-logits.ts';
import { argmax } from './argmax.ts';
import { exponential } from './exponential.ts';
import type { SimdKernel } from './kernel/simd-kernel.ts';

/** Below every finite float32, above −∞: the cut that drops forbidden tokens only. */
export const LOWEST_LOGIT = -3.4028234663852886e38;

/**
 * Above this size, sums over a row are made in float32 (relative error about 10⁻⁶), else in float64. At
 * 151,936 tokens float32 with SIMD takes 0.1 ms instead of 0.7 ms.
 */
const MAX_EXACT_VOCABULARY = 32_768;

/**
 * Below e^−87 float32 has no normal numbers. A large vocabulary at that level weighs less than the rounding
 * of 1.
 */
const LOWEST_EXPONENT = -87;

export function isLargeVocabulary(vocabularySize: number): boolean {
  return vocabularySize > MAX_EXACT_VOCABULARY;
}

/**
 * The row of logits being sampled, with statistics of its blocks of 128 consecutive ids. With them, most
 * blocks need not be read id by id. `begin` sets the row, and everything else refers to it. A token's weight
 * is e^((z − max z) / temperature).
 */
export class Row {
  logits: Float32Array = new Float32Array(0);
  /** The largest logit. */
  highest = Number.NEGATIVE_INFINITY;
  /** Null if all logits are here. */
  #sparse: SparseRow | null = null;
  /** 1 / temperature; `begin` sets it to 1. */
  coldness = 1;
  /** The largest logit of each block. */
  readonly maxima: Float32Array;
  /** The weight of each block, set by `weigh`. */
  readonly #sums: Float64Array;
  /** What the kernel found: two numbers per block. */
  readonly #kernelSums: Float32Array;
  readonly #deviationTotals = new Float64Array(3);
  readonly #float = new Float32Array(1);
  readonly #floatBits = new Int32Array(this.#float.buffer);
  readonly #kernel: SimdKernel;
  /** The first block that is summed in float64: 0, or the last, incomplete one. */
  readonly #firstExact: number;
  readonly sumsInFloat32: boolean;
  /** What `weigh` found at the coldness `weighedAt`. */
  #weight = 0;
  #moment = 0;
  #weighedAt = Number.NaN;

  constructor(vocabularySize: number, kernel: SimdKernel, sumsInFloat32: boolean) {
    const blocks = blocksOf(vocabularySize);
    this.#kernel = kernel;
    this.sumsInFloat32 = sumsInFloat32;
    this.#firstExact = sumsInFloat32 ? Math.floor(vocabularySize / BLOCK_SIZE) : 0;
    this.maxima = new Float32Array(blocks);
    this.#sums = new Float64Array(blocks);
    this.#kernelSums = new Float32Array(2 * blocks);
  }

  /**
   * Sets the row and returns the id of its largest logit, the lowest id among equals.
   * @param sparse what is known of a row of which not all logits are here; for rows whose sums are made in
   *   float32
   * @throws InvalidLogitsError if a logit is NaN or +∞, NoCandidatesError if all are −∞, AbsentLogits
   */
  begin(logits: Float32Array, sparse: SparseRow | null = null): number {
    const { maxima } = this;
    const isValid = this.#findMaxima(logits, sparse);
    let best = 0;
    for (let block = 1; block < maxima.length; block++) if (maxima[block]! > maxima[best]!) best = block;
    const highest = maxima[best]!;
    sparse?.require(best);
    // Throws, with the position of the invalid logit.
    if (!isValid || highest === Number.NEGATIVE_INFINITY) return argmax(logits);
    this.logits = logits;
    this.#sparse = sparse;
    this.highest = highest;
    this.coldness = 1;
    this.#weighedAt = Number.NaN;
    return logits.indexOf(highest, best * BLOCK_SIZE);
  }

  #findMaxima(logits: Float32Array, sparse: SparseRow | null): boolean {
    if (sparse === null) return this.#kernel.maxima(logits, this.maxima);
    this.maxima.set(sparse.statistics.maxima);
    for (const most of this.maxima) if (most === Number.POSITIVE_INFINITY) sparse.giveUp();
    return true;
  }

  /** Requires the blocks that have a logit of at least `cut`. @throws AbsentLogits */
  requireAbove(cut: number): void {
    this.#sparse?.requireAbove(cut);
  }

  weightOf(id: number): number {
    return exponential((this.logits[id]! - this.highest) * this.coldness);
  }

  /** The weight of all tokens together. */
  weigh(): number {
    const { logits, coldness, highest, maxima } = this;
    const sums = this.#sums;
    if (coldness === this.#weighedAt) return this.#weight;
    this.#weight = 0;
    this.#moment = 0;
    if (this.#sparse !== null) return this.#weighSparse(this.#sparse);
    const firstExact = this.#firstExact;
    const kernelSums = this.#kernelSums;
    if (firstExact > 0) this.#kernel.sums(logits, highest, coldness, kernelSums);
    for (let block = 0; block < sums.length; block++) {
      if ((maxima[block]! - highest) * coldness < LOWEST_EXPONENT) sums[block] = 0;
      else if (block >= firstExact) this.#weighExactly(block);
      else {
        this.#weight += sums[block] = kernelSums[2 * block]!;
        this.#moment += kernelSums[2 * block + 1]! * Math.LN2;
      }
    }
    this.#weighedAt = coldness;
    return this.#weight;
  }

  #weighSparse(sparse: SparseRow): number {
    const blockSums = sparse.sumsAt(this.coldness);
    for (let block = 0; block < blockSums.length; block++)
      this.#weight += this.#sums[block] = blockSums[block]!;
    this.#moment = Number.NaN;
    this.#weighedAt = this.coldness;
    return this.#weight;
  }

  #weighExactly(block: number): void {
    const { logits, highest, coldness } = this;
    const end = Math.min((block + 1) * BLOCK_SIZE, logits.length);
    let sum = 0;
    let moment = 0;
    for (let id = block * BLOCK_SIZE; id < end; id++) {
      const x = (logits[id]! - highest) * coldness;
      const weight = exponential(x);
      sum += weight;
      if (weight > 0) moment += weight * x;
    }
    this.#weight += this.#sums[block] = sum;
    this.#moment += moment;
  }

  /** Σ p · ln w, with p the probabilities and w the weights; never above 0. */
  meanLogWeight(): number {
    const weight = this.weigh();
    return Math.min(0, this.#moment / weight);
  }

  /** The number of the logits above −∞, Σ d and Σ d² with d = max z − z. */
  deviations(): { readonly count: number; readonly sum: number; readonly squares: number } {
    const totals = this.#deviationTotals;
    totals.fill(0);
    this.#kernel.deviations(this.logits, this.highest, totals);
    return { count: totals[0]!, sum: totals[1]!, squares: totals[2]! };
  }

  /** Writes the ids of the logits of at least `cut` (finite) in ascending order; returns their number. */
  list(cut: number, ids: Int32Array): number {
    const least = this.#roundedUp(cut);
    this.requireAbove(least);
    return this.#kernel.list(this.logits, this.maxima, least, ids);
  }

  /** The smallest float32 that is at least `cut`. */
  #roundedUp(cut: number): number {
    const float = this.#float;
    float[0] = cut;
    if (float[0] < cut) this.#floatBits[0]! += float[0] < 0 ? -1 : 1;
    return float[0];
  }

  /**
   * Draws from all tokens by the inverse CDF in ascending order of ids: finds the block by the blocks'
   * weights, then the token by exact weights.
   * @param uniform in [0, 1)
   */
  draw(uniform: number): number {
    const target = uniform * this.weigh();
    const { logits } = this;
    const sums = this.#sums;
    let before = 0;
    let block = 0;
    while (before + sums[block]! <= target) before += sums[block++]!;
    this.#sparse?.require(block);
    const start = block * BLOCK_SIZE;
    const end = Math.min(start + BLOCK_SIZE, logits.length);
    let exact = 0;
    for (let id = start; id < end; id++) exact += this.weightOf(id);
    const within = ((target - before) / sums[block]!) * exact;
    let sum = 0;
    let drawn = start;
    for (let id = start; id < end && sum <= within; id++) {
      const weight = this.weightOf(id);
      if (weight === 0) continue;
      sum += weight;
      drawn = id;
    }
    return drawn;
  }
}

import type { BlockKernel } from './block-kernel.ts';
import { exponential } from './exponential.ts';
import { argmax } from './logits/argmax.ts';
import { LOWEST_LOGIT, type Row } from './truncation/gather.ts';

/** Below e^−87 float32 has no normal numbers; all of a large vocabulary at that weighs less than a float64's rounding. */
const LOWEST_EXPONENT = -87;

/**
 * What is known of blocks of consecutive ids of one row, so that large vocabularies need not be read id by id: with a
 * kernel the largest logit of each block and, when asked for, its weight; without one, a single block of which nothing
 * is known. One object serves all rows: `argmax` begins a row, the rest speaks of that row.
 */
export class RowBlocks {
  readonly blockSize: number;
  /** Bits of an id that do not tell its block. */
  readonly blockBits: number;
  /** The largest logit of each block; +∞ where it is not known. */
  readonly maxima: Float32Array;
  /** Filled by `weigh`. */
  readonly sums: Float64Array;
  /** Filled by `weighAbove`. */
  readonly above: Float64Array;
  private readonly moments: Float64Array;
  /** Whether there is a kernel, and so whether `weigh` may be called. */
  readonly weighs: boolean;
  /** The largest logit. */
  highest = Number.NEGATIVE_INFINITY;
  /** How many rows were begun. */
  begun = 0;
  /** What `weigh` returned for this coldness; it returns it again. */
  private total = 0;
  private weighedAt = Number.NaN;
  private readonly kernel: BlockKernel | null;
  private readonly deviationSums = new Float64Array(3);
  private readonly float = new Float32Array(1);
  private readonly floatBits = new Int32Array(this.float.buffer);

  constructor(vocabularySize: number, kernel: BlockKernel | null) {
    this.kernel = kernel;
    this.weighs = kernel !== null;
    this.blockSize = kernel?.blockSize ?? vocabularySize;
    this.blockBits = kernel === null ? 31 : Math.log2(kernel.blockSize);
    const blocks = Math.ceil(vocabularySize / this.blockSize);
    this.maxima = new Float32Array(blocks).fill(Number.POSITIVE_INFINITY);
    this.sums = new Float64Array(blocks);
    this.above = new Float64Array(blocks);
    this.moments = new Float64Array(blocks);
  }

  /** As the function `argmax`, errors included. */
  argmax(row: Float32Array): number {
    const best = this.kernel === null ? argmax(row) : this.bestByBlocks(row, this.kernel);
    this.highest = row[best]!;
    this.weighedAt = Number.NaN;
    this.begun++;
    return best;
  }

  private bestByBlocks(row: Float32Array, kernel: BlockKernel): number {
    const { maxima, blockSize } = this;
    let sound = kernel.maxima(row, maxima);
    const rest = row.length - (row.length % blockSize);
    if (rest < row.length) {
      let highest = Number.NEGATIVE_INFINITY;
      for (let id = rest; id < row.length; id++) {
        const logit = row[id]!;
        if (!(logit < Number.POSITIVE_INFINITY)) sound = false;
        if (logit > highest) highest = logit;
      }
      maxima[rest / blockSize] = highest;
    }
    let best = 0;
    for (let block = 1; block < maxima.length; block++) if (maxima[block]! > maxima[best]!) best = block;
    const highest = maxima[best]!;
    // Bad rows, and good ones that look like it, are told apart the plain way.
    if (!sound || highest === Number.NEGATIVE_INFINITY) return argmax(row);
    return row.indexOf(highest, best * blockSize);
  }

  /** Fills `sums` with Σ e^((z − max z) / T) of each block; their total. Relative error about 10⁻⁶, float32's. */
  weigh(row: Row): number {
    if (row.coldness === this.weighedAt) return this.total;
    const { logits, highest, coldness } = row;
    this.kernel?.sums(logits, highest, coldness, this.sums);
    return this.addUp(row);
  }

  /** Σ p·x with x = (z − max z) / T and p the softmax, as exact as `weigh`, which it does besides. With a kernel only. */
  meanExponent(row: Row): number {
    const moments = this.moments;
    this.kernel?.moments(row, this.sums, moments);
    const total = this.addUp(row, moments);
    let weighted = 0;
    for (let block = 0; block < moments.length; block++) weighted += moments[block]!;
    return weighted / total;
  }

  /** Fills `above` with the same sums over the logits that are at least `cut`, and weighs; their total. With a kernel only. */
  weighAbove(row: Row, cut: number): number {
    const { logits, highest, coldness } = row;
    const { above, blockSize } = this;
    this.kernel?.sumsAbove(row, this.roundedUp(cut), this.sums, above);
    this.addUp(row);
    const rest = this.restOf(logits);
    if (rest < logits.length) above[rest / blockSize] = 0;
    for (let id = rest; id < logits.length; id++) {
      if (logits[id]! >= cut) above[rest / blockSize]! += exponential((logits[id]! - highest) * coldness);
    }
    let total = 0;
    for (let block = 0; block < above.length; block++) total += above[block]!;
    return total;
  }

  /** The total of the sums; completes them (and the moments) where the kernel has not. */
  private addUp({ logits, highest, coldness }: Row, moments: Float64Array | null = null): number {
    const { sums, maxima, blockSize } = this;
    const rest = logits.length - (logits.length % blockSize);
    if (rest < logits.length) {
      let [sum, weighted] = [0, 0];
      for (let id = rest; id < logits.length; id++) {
        const x = (logits[id]! - highest) * coldness;
        const weight = exponential(x);
        sum += weight;
        if (weight > 0) weighted += weight * x;
      }
      sums[rest / blockSize] = sum;
      if (moments !== null) moments[rest / blockSize] = weighted;
    }
    let total = 0;
    for (let block = 0; block < sums.length; block++) {
      if ((maxima[block]! - highest) * coldness < LOWEST_EXPONENT) {
        sums[block] = 0;
        if (moments !== null) moments[block] = 0;
      }
      total += sums[block]!;
    }
    this.weighedAt = coldness;
    this.total = total;
    return total;
  }

  /** The number of the logits that are not −∞, and their Σ (highest − z) and Σ (highest − z)²; good until the next call. */
  deviations({ logits, highest }: Row): Float64Array {
    const sums = this.deviationSums;
    if (this.kernel === null) sums.fill(0);
    else this.kernel.deviations(logits, highest, sums);
    for (let id = this.restOf(logits); id < logits.length; id++) {
      if (logits[id]! < LOWEST_LOGIT) continue;
      const below = highest - logits[id]!;
      sums[0]! += 1;
      sums[1]! += below;
      sums[2]! += below * below;
    }
    return sums;
  }

  /**
   * Writes the ids of the logits that are at least `cut` (and below `limit`), in ascending order, and, if asked for, their
   * weights; how many.
   */
  list(
    row: Row,
    cut: number,
    ids: Int32Array,
    weights: Float64Array | null,
    limit = Number.POSITIVE_INFINITY,
  ): number {
    const { logits, highest, coldness } = row;
    const [from, to] = [this.roundedUp(cut), this.roundedUp(limit)];
    let count = this.kernel?.list(row, this.maxima, from, to, ids, weights) ?? 0;
    for (let id = this.restOf(logits); id < logits.length; id++) {
      const logit = logits[id]!;
      if (logit < cut || logit >= limit) continue;
      if (weights !== null) weights[count] = exponential((logit - highest) * coldness);
      ids[count++] = id;
    }
    return count;
  }

  /** The first id that a kernel leaves to others. */
  private restOf(row: Float32Array): number {
    return this.kernel === null ? 0 : row.length - (row.length % this.blockSize);
  }

  /** The smallest float32 that is no smaller. */
  private roundedUp(cut: number): number {
    const { float } = this;
    float[0] = cut;
    if (float[0] < cut) this.floatBits[0]! += float[0] < 0 ? -1 : 1;
    return float[0];
  }
}

import type { Row } from './truncation/gather.ts';

/**
 * Reductions of a row over blocks of `blockSize` consecutive ids, faster than JavaScript has them. Only whole blocks are
 * looked at: ids past the last of them are the caller's. Every result is a function of the row's bits alone, wherever the
 * row lies in memory, but for the sign of a maximum that is zero.
 */
export interface BlockKernel {
  /** A power of two. */
  readonly blockSize: number;
  /** Numbers that lie where the kernel reads them fastest; kept as long as the kernel. */
  allocate(length: number): Float32Array<ArrayBuffer>;
  /**
   * Writes each block's largest logit.
   * @returns false where a block may hold NaN or +∞; then its maximum is worth nothing if it does
   */
  maxima(row: Float32Array, maxima: Float32Array): boolean;
  /**
   * Writes each block's Σ e^((z − highest) · coldness), to float32's precision. Blocks whose largest term is no normal
   * float32 may get any number.
   */
  sums(row: Float32Array, highest: number, coldness: number, sums: Float64Array): void;
  /** The same sums, and each block's Σ e^x · x with x = (z − highest) · coldness. */
  moments(row: Row, sums: Float64Array, moments: Float64Array): void;
  /** The same sums, and in the same way those of the logits that are at least `cut`, a float32. */
  sumsAbove(row: Row, cut: number, sums: Float64Array, above: Float64Array): void;
  /** Writes the number of the logits that are not −∞, and their Σ (highest − z) and Σ (highest − z)² in float64. */
  deviations(row: Float32Array, highest: number, sums: Float64Array): void;
  /**
   * Writes the ids of the logits that are at least `cut` and below `limit`, both float32, in ascending order and, if asked
   * for, their weights e^((z − highest) · coldness) with the bits of `exponential`; how many.
   * @param maxima each block's largest logit, so that blocks without such logits need not be read
   */
  list(
    row: Row,
    maxima: Float32Array,
    cut: number,
    limit: number,
    ids: Int32Array,
    weights: Float64Array | null,
  ): number;
}

import type { BlockKernel } from '../../../origin/sampling/block-kernel.ts';
import { exponential } from '../../../origin/sampling/exponential.ts';
import { sum } from './reference.ts';

/** A kernel in plain JavaScript, exact to float64 (listed weights to the bits of `exponential`), which leaves anything at all where it promises nothing. */
export function plainKernel(blockSize: number): BlockKernel {
  const whole = (row: Float32Array): Float32Array[] =>
    Array.from({ length: Math.floor(row.length / blockSize) }, (_, block) =>
      row.subarray(block * blockSize, (block + 1) * blockSize),
    );
  const isBad = (logit: number): boolean => Number.isNaN(logit) || logit === Infinity;
  return {
    blockSize,
    allocate: (length) => new Float32Array(length),
    maxima(row, maxima) {
      const blocks = whole(row);
      for (const [block, logits] of blocks.entries()) {
        maxima[block] = logits.some(isBad) ? 12345 : Math.max(...logits);
      }
      return !blocks.some((logits) => logits.some(isBad));
    },
    sums(logits, highest, coldness, sums) {
      this.moments({ logits, highest, coldness }, sums, new Float64Array(sums.length));
    },
    moments({ logits: row, highest, coldness }, sums, moments) {
      for (const [block, logits] of whole(row).entries()) {
        const exponents = Array.from(logits, (logit) => (logit - highest) * coldness);
        const isNormal = Math.max(...exponents) > -87.3;
        const terms = exponents.filter((x) => x > -Infinity);
        sums[block] = isNormal ? sum(terms.map((x) => Math.exp(x))) : Number.NaN;
        moments[block] = isNormal ? sum(terms.map((x) => Math.exp(x) * x)) : Number.NaN;
      }
    },
    sumsAbove(row, cut, sums, above) {
      const reaching = row.logits.map((logit) => (logit >= cut ? logit : -Infinity));
      this.moments({ ...row, logits: reaching }, above, new Float64Array(sums.length));
      this.moments(row, sums, new Float64Array(sums.length));
      for (const [block, logits] of whole(reaching).entries())
        if (Math.max(...logits) === -Infinity) above[block] = 0;
    },
    deviations(row, highest, sums) {
      const finite = whole(row).flatMap((logits) => [...logits].filter((logit) => logit > -Infinity));
      sums[0] = finite.length;
      sums[1] = sum(finite.map((logit) => highest - logit));
      sums[2] = sum(finite.map((logit) => (highest - logit) ** 2));
    },
    list({ logits, highest, coldness }, _maxima, cut, limit, ids, weights) {
      let count = 0;
      const end = logits.length - (logits.length % blockSize);
      for (let id = 0; id < end; id++) {
        if (logits[id]! < cut || logits[id]! >= limit) continue;
        if (weights !== null) weights[count] = exponential((logits[id]! - highest) * coldness);
        ids[count++] = id;
      }
      return count;
    },
  };
}

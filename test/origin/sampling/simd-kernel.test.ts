import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KERNEL_MODULE } from '../../../origin/sampling/kernel/block-kernel-binary.ts';
import { SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import { LOWEST_LOGIT } from '../../../origin/sampling/row.ts';
import { runs } from '../../support/random.ts';
import { anyColdness, anyRow, SIZE } from './any-row.ts';
import { BLOCK_KERNEL, buildKernel } from './block-kernel-build.ts';
import { sum } from './reference.ts';

const BLOCKS = 8;
const kernel = new SimdKernel();
const MAX_ROWS = 5;
const MAX_OFFSET = 15;
const inPlace = kernel.allocate(MAX_OFFSET + MAX_ROWS * SIZE);

/** Of float32, relative. */
const ROUNDING = 2 ** -24;
/**
 * Relative error of a block's sum: 33 additions are rounded, and a power of two is exact to ten roundings.
 */
const SUM_ERROR = 44 * ROUNDING;
/**
 * Error of an exponent, relative to its size: a difference, twice the coldness, the logarithm's base and the
 * product.
 */
const EXPONENT_ERROR = 5 * ROUNDING;

it('has the binary that its AssemblyScript source compiles to', async () => {
  expect(await buildKernel(BLOCK_KERNEL)).toBe(KERNEL_MODULE);
});

/** All that the kernel finds in a row. */
function reduce(row: Float32Array, coldness: number, cut: number) {
  const maxima = new Float32Array(BLOCKS);
  const isValid = kernel.maxima(row, maxima);
  const sums = new Float32Array(2 * BLOCKS);
  const highest = Math.max(...maxima);
  kernel.sums(row, highest, coldness, sums);
  const totals = new Float64Array(3);
  kernel.deviations(row, highest, totals);
  const ids = new Int32Array(SIZE);
  const count = kernel.list(row, maxima, cut, ids);
  return {
    isValid,
    highest,
    // Adding 0 makes negative zeros positive: maxima are only compared.
    maxima: Array.from(maxima, (maximum) => maximum + 0),
    sums: Array.from({ length: BLOCKS }, (_, block) => sums[2 * block]!),
    moments: Array.from({ length: BLOCKS }, (_, block) => sums[2 * block + 1]! * Math.LN2),
    deviations: [...totals],
    ids: [...ids.subarray(0, count)],
  };
}

/** Σ e^x, Σ e^x |x| and Σ e^x x² of some logits, x = (z − highest) · coldness. */
function momentsOf(logits: Float32Array, highest: number, coldness: number): [number, number, number] {
  const exponents = Array.from(logits, (z) => (highest - z) * coldness).filter((x) => x < 700);
  const momentOf = (power: number) => sum(exponents.map((x) => Math.exp(-x) * x ** power));
  return [momentOf(0), momentOf(1), momentOf(2)];
}

const blocksOf = (row: Float32Array) =>
  Array.from({ length: BLOCKS }, (_, block) => row.subarray(block * 128, (block + 1) * 128));

describe('the SIMD kernel', () => {
  it('computes the same bits for a single row and among other rows, at any address, in place or copied', () => {
    const rows = fc.array(anyRow, { minLength: 1, maxLength: MAX_ROWS });
    fc.assert(
      fc.property(rows, fc.nat(MAX_OFFSET), anyColdness, (batch, offset, coldness) => {
        for (const [r, row] of batch.entries()) inPlace.set(row, offset + r * SIZE);
        for (const [r, row] of batch.entries()) {
          const start = offset + r * SIZE;
          const cut = Math.max(LOWEST_LOGIT, row[r]!);
          const together = reduce(inPlace.subarray(start, start + SIZE), coldness, cut);
          expect(together).toEqual(reduce(row.slice(), coldness, cut));
        }
      }),
      { numRuns: runs(200) },
    );
  });

  it('finds the largest logit of each block exactly, and its sum to float32’s rounding', () => {
    fc.assert(
      fc.property(anyRow, anyColdness, (row, coldness) => {
        const { highest, maxima, sums } = reduce(row, coldness, 0);
        for (const [block, logits] of blocksOf(row).entries()) {
          expect(maxima[block]! - Math.max(...logits) || 0).toBe(0);
          const [weight, size] = momentsOf(logits, highest, coldness);
          const tolerance = SUM_ERROR * weight + EXPONENT_ERROR * size + 1e-35;
          expect(Math.abs(sums[block]! - weight)).toBeLessThanOrEqual(tolerance);
        }
      }),
      { numRuns: runs(300) },
    );
  });

  it('finds the mean exponent of the softmax to float32’s rounding', () => {
    fc.assert(
      fc.property(anyRow, anyColdness, (row, coldness) => {
        const { highest, sums, moments } = reduce(row, coldness, 0);
        const [weight, size, square] = momentsOf(row, highest, coldness);
        const mean = size / weight;
        const found = sum(moments) / sum(sums);
        const tolerance = 2 * SUM_ERROR * mean + EXPONENT_ERROR * (square / weight + mean ** 2) + 1e-12;
        expect(Math.abs(found + mean)).toBeLessThan(tolerance);
      }),
      { numRuns: runs(300) },
    );
  });

  it('finds the deviations from the largest logit to float64’s precision', () => {
    fc.assert(
      fc.property(anyRow, (row) => {
        const { highest, deviations } = reduce(row, 1, 0);
        const below = Array.from(row, (z) => highest - z).filter((x) => x < Infinity);
        const expected = [below.length, sum(below), sum(below.map((x) => x * x))];
        expect(deviations[0]).toBe(below.length);
        for (const [i, x] of expected.entries())
          expect(Math.abs(deviations[i]! - x)).toBeLessThanOrEqual(1e-13 * x);
      }),
      { numRuns: runs(200) },
    );
  });

  it('lists exactly the ids whose logits reach a cut', () => {
    fc.assert(
      fc.property(anyRow, fc.nat(SIZE - 1), fc.boolean(), (row, id, all) => {
        const cut = all ? LOWEST_LOGIT : Math.max(LOWEST_LOGIT, row[id]!);
        const expected = Array.from(row, (z, at) => (z >= cut ? at : -1)).filter((at) => at >= 0);
        expect(reduce(row, 1, cut).ids).toEqual(expected);
      }),
      { numRuns: runs(300) },
    );
  });

  it('finds the same in rows longer than it reads at a time', () => {
    const size = 150 * 128 + 37;
    const [maxima, ids, totals] = [new Float32Array(151), new Int32Array(size), new Float64Array(3)];
    fc.assert(
      fc.property(anyRow, fc.nat(SIZE - 1), (pattern, at) => {
        const row = Float32Array.from({ length: size }, (_, id) => pattern[(id * 31) % SIZE]!);
        const cut = Math.max(LOWEST_LOGIT, pattern[at]!);
        expect(kernel.maxima(row, maxima)).toBe(true);
        const expected = Array.from(maxima, (_, block) =>
          Math.max(...row.subarray(block * 128, block * 128 + 128)),
        );
        expect(Array.from(maxima, (maximum) => maximum + 0)).toEqual(expected.map((maximum) => maximum + 0));
        const count = kernel.list(row, maxima, cut, ids);
        const listed = Array.from(row, (z, id) => (z >= cut ? id : -1)).filter((id) => id >= 0);
        expect([...ids.subarray(0, count)]).toEqual(listed);
        kernel.deviations(row, 0, totals.fill(0));
        expect(totals[0]).toBe(row.filter((z) => z > -Infinity).length);
      }),
      { numRuns: 30 },
    );
  });

  it('reports NaN and +∞ at any position', () => {
    const bad = fc.constantFrom(Number.NaN, -Number.NaN, Number.POSITIVE_INFINITY);
    fc.assert(
      fc.property(anyRow, fc.nat(SIZE - 1), bad, (row, id, value) => {
        expect(kernel.maxima(row, new Float32Array(BLOCKS))).toBe(true);
        row[id] = value;
        expect(kernel.maxima(row, new Float32Array(BLOCKS))).toBe(false);
      }),
      { numRuns: runs(500) },
    );
  });

  it('does not read past the end of a row', () => {
    const two = kernel.allocate(2 * SIZE);
    const first = two.subarray(0, SIZE);
    two.fill(1000, SIZE);
    first.fill(-3);
    const { maxima, sums, deviations, ids } = reduce(first, 1, -3);
    expect(maxima).toEqual(new Array(BLOCKS).fill(-3));
    expect(sum(sums)).toBeCloseTo(SIZE, 3);
    expect(deviations).toEqual([SIZE, 0, 0]);
    expect(ids).toHaveLength(SIZE);
  });
});

import { describe, expect, it } from 'vitest';
import { Quantizer } from '../../../origin/export/precision/quantize.ts';
import { KERNEL_MODULE } from '../../../origin/export/precision/quantize-kernel-binary.ts';
import { FLOAT16_VALUES, toFloat16 } from '../../../shared/float16.ts';
import { randomFrom } from '../../support/random.ts';
import { buildKernel, QUANTIZE_KERNEL } from '../sampling/block-kernel-build.ts';

const BLOCK = 32;
const random = randomFrom(52);
/** Nearly normal values, with one that is far out in some blocks. */
const weights = (length: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => (random() + random() + random() - 1.5) * (i % 97 === 0 ? 5 : 1));

const levelAt = (levels: Uint8Array, index: number, bits: 4 | 8): number =>
  bits === 8 ? levels[index]! - 128 : ((levels[index >> 1]! >> (4 * (index & 1))) & 15) - 8;

/** Σ (x − level · scale)² of one block, with the levels rounded to nearest. */
function errorWith(block: Float32Array, scale: number): number {
  return block.reduce((sum, x) => {
    const level = Math.max(-8, Math.min(7, Math.round(x / scale)));
    return sum + (x - level * scale) ** 2;
  }, 0);
}

describe('the quantizer', () => {
  const quantizer = new Quantizer();

  it.each([32, 64, 128])('rounds blocks of %i to 8 bits within half a step, the largest exactly', (size) => {
    const values = weights(64 * size);
    const { levels, scales } = quantizer.quantize(values, 4 * size, { bits: 8, blockSize: size });
    expect(scales).toHaveLength(64);
    for (const [index, value] of values.entries()) {
      const scale = scales[Math.floor(index / size)]!;
      expect(Math.abs(value - levelAt(levels, index, 8) * scale)).toBeLessThanOrEqual(scale * 0.5001);
    }
    for (const [block, scale] of scales.entries()) {
      const largest = Math.max(...values.subarray(block * size, (block + 1) * size).map(Math.abs));
      expect(scale).toBeCloseTo(largest / 127, 7);
    }
  });

  it.each([32, 64, 128])('finds 4-bit scales of blocks of %i close to the best of a fine search', (size) => {
    const values = weights(64 * size);
    const { levels, scales } = quantizer.quantize(values, size, { bits: 4, blockSize: size });
    let [own, best, plain] = [0, 0, 0];
    for (const [block, scale] of scales.entries()) {
      const part = values.subarray(block * size, (block + 1) * size);
      own += part.reduce((sum, x, i) => sum + (x - levelAt(levels, block * size + i, 4) * scale) ** 2, 0);
      const extreme = part.reduce((most, x) => (Math.abs(x) > Math.abs(most) ? x : most), 0);
      const tried = Array.from({ length: 400 }, (_, i) => errorWith(part, extreme / (-4 - i / 50)));
      const mirrored = Array.from({ length: 400 }, (_, i) => errorWith(part, extreme / (4 + i / 50)));
      best += Math.min(...tried, ...mirrored);
      plain += errorWith(part, extreme / -8);
    }
    expect(own).toBeLessThan(best * 1.06);
    expect(own).toBeLessThan(plain * 0.93);
  });

  it.each([4, 8] as const)('fills incomplete blocks of %i bits with the level of zero', (bits) => {
    const values = weights(3 * 40);
    const { levels, scales } = quantizer.quantize(values, 40, { bits, blockSize: BLOCK });
    expect(scales).toHaveLength(6);
    for (let row = 0; row < 3; row++) {
      for (let i = 40; i < 64; i++) expect(levelAt(levels, row * 64 + i, bits)).toBe(0);
      const scale = scales[row * 2 + 1]!;
      const last = levelAt(levels, row * 64 + 39, bits) * scale;
      expect(Math.abs(values[row * 40 + 39]! - last)).toBeLessThanOrEqual(Math.abs(scale) * 1.01);
    }
  });

  it.each([4, 8] as const)(
    'gives blocks of zeros and of tiny values the level of zero in %i bits',
    (bits) => {
      const values = new Float32Array(2 * BLOCK);
      values[40] = 1e-40;
      const { levels, scales } = quantizer.quantize(values, BLOCK, { bits, blockSize: BLOCK });
      expect([...scales]).toEqual([0, 0]);
      expect(Array.from({ length: 64 }, (_, i) => levelAt(levels, i, bits))).toEqual(Array(64).fill(0));
    },
  );

  it.each([4, 8] as const)('quantizes more values than one call of the kernel takes, to %i bits', (bits) => {
    const values = weights(2 ** 20 + 64);
    const all = quantizer.quantize(values, BLOCK, { bits, blockSize: BLOCK });
    const last = quantizer.quantize(values.subarray(2 ** 20), BLOCK, { bits, blockSize: BLOCK });
    expect(all.scales.slice(-2)).toEqual(last.scales);
    expect(all.levels.slice(-last.levels.length)).toEqual(last.levels);
  });

  it.each([NaN, Infinity, -Infinity])('refuses %d', (value) => {
    const values = weights(2 * BLOCK);
    values[37] = value;
    for (const bits of [4, 8] as const)
      expect(() => quantizer.quantize(values, BLOCK, { bits, blockSize: BLOCK })).toThrow(RangeError);
  });

  it('is compiled from its source', async () => {
    expect(await buildKernel(QUANTIZE_KERNEL)).toBe(KERNEL_MODULE);
  });
});

describe('half precision', () => {
  it('returns every number of half precision unchanged', () => {
    const numbers = Array.from(FLOAT16_VALUES.keys()).filter((bits) => !Number.isNaN(FLOAT16_VALUES[bits]!));
    const values = Float32Array.from(numbers, (bits) => FLOAT16_VALUES[bits]!);
    expect([...toFloat16(values)]).toEqual(numbers);
  });

  it('rounds to nearest, and ties to even', () => {
    const ulp = 2 ** -10;
    const cases = [
      [1 + ulp / 2, 1],
      [1 + ulp * 1.5, 1 + ulp * 2],
      [1 + ulp * 0.51, 1 + ulp],
      [65_519, 65_504],
      [65_520, Infinity],
      [-(2 ** -25), -0],
      [2 ** -24 * 1.5, 2 ** -23],
      [2 ** -14 - 2 ** -26, 2 ** -14],
    ] as const;
    const bits = toFloat16(Float32Array.from(cases, ([value]) => value));
    expect(Array.from(bits, (one) => FLOAT16_VALUES[one])).toEqual(cases.map(([, rounded]) => rounded));
  });
});

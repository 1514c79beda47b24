import fc from 'fast-check';
import { mulberry32 } from '../../support/random.ts';

/** Seven whole blocks and a short one. */
export const SIZE = 7 * 128 + 37;

/** Ordinary and extreme rows: ties, forbidden tokens, a single allowed token, ranges beyond float32. */
export const anyRow = fc
  .record({
    seed: fc.integer({ min: 1, max: 2 ** 31 - 2 }),
    scale: fc.constantFrom(0, 1, 5, 30, 1000, 1e38),
    step: fc.constantFrom(0, 0.5, 2),
    forbidden: fc.constantFrom(0, 0.3, 0.99, 1),
    open: fc.nat(SIZE - 1),
  })
  .map(({ seed, scale, step, forbidden, open }) => {
    const uniform = mulberry32(seed);
    const row = Float32Array.from({ length: SIZE }, () => {
      const z = scale * (uniform() + uniform() + uniform() - 1.5);
      if (uniform() < forbidden) return -Infinity;
      return step === 0 || scale > 1000 ? z : Math.round(z / step) * step;
    });
    row[open] = scale * (uniform() - 0.5);
    return row;
  });

export const anyColdness = fc.constantFrom(0.5, 1, 1 / 0.8, 10, 9e4);

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { fitsThreshold } from '../../shared/dynamic-threshold.ts';

it('leaves tenants that want all of a space equal parts, and one part more free per unit of alpha', () => {
  const alphas = fc.integer({ min: 1, max: 4 });
  fc.assert(
    fc.property(
      alphas,
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 0, max: 500 }),
      (alpha, n, space) => {
        const held = Array<number>(n).fill(0);
        const free = () => space - held.reduce((sum, amount) => sum + amount, 0);
        for (let round = 0; round < space; round++) {
          for (const [tenant, amount] of held.entries()) {
            if (fitsThreshold(amount, 1, free(), alpha)) held[tenant]!++;
          }
        }
        const part = (alpha * space) / (alpha * n + 1);
        for (const amount of held) expect(Math.abs(amount - part)).toBeLessThanOrEqual(alpha + 1);
        expect(free()).toBeGreaterThanOrEqual(Math.floor(space / (alpha * n + 1)));
        expect(fitsThreshold(0, 1, free(), alpha)).toBe(free() > 0);
      },
    ),
  );
});

it('never lets more in than is free', () => {
  expect(fitsThreshold(0, 10, 10, 3)).toBe(true);
  expect(fitsThreshold(0, 11, 10, 3)).toBe(false);
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dynamicTemperature } from '../../../origin/sampling/dynamic-temperature.ts';
import { runs } from '../../support/random.ts';
import { sampleOnce, workspaceOf } from './one-token.ts';

const SIZE = 300;

/** `open` logits that hardly differ; the others are forbidden. */
const evenRow = fc
  .record({
    open: fc.integer({ min: 2, max: SIZE }),
    step: fc.constantFrom(0, 1e-9, 1e-7, 1e-4),
    first: fc.nat(SIZE - 1),
  })
  .map(({ open, step, first }) =>
    Float32Array.from({ length: SIZE }, (_, id) => {
      const rank = (id - first + SIZE) % SIZE;
      return rank < open ? (rank % 3) * step : -Infinity;
    }),
  );

describe.each([
  ['float64', false],
  ['float32', true],
])('dynamic temperature with sums in %s', (_, sumsInFloat32) => {
  const workspace = workspaceOf(SIZE, sumsInFloat32);

  it('stays within its range for even rows and large exponents', () => {
    const { row } = workspace;
    fc.assert(
      fc.property(evenRow, fc.constantFrom(0, 0.5, 1, 1e9, 1e300), (logits, exponent) => {
        row.begin(logits);
        const temperature = dynamicTemperature(row, 1, 0.5, exponent);
        expect(temperature).toBeGreaterThanOrEqual(0.5);
        expect(temperature).toBeLessThanOrEqual(1.5);
      }),
      { numRuns: runs(500) },
    );
  });

  it('draws no forbidden token, even with a large range', () => {
    const hot = fc.record({
      dynatempRange: fc.constantFrom(1e9, 1e38, 1e39, 1e50, 1e300, Number.MAX_VALUE),
      topP: fc.constantFrom(1, 0.9),
      typicalP: fc.constantFrom(1, 0.9),
      mirostat: fc.constantFrom(0 as const, 1 as const, 2 as const),
    });
    fc.assert(
      fc.property(evenRow, hot, fc.nat(1000), (logits, parameters, step) => {
        const { token } = sampleOnce({ logits, parameters, step }, workspace);
        expect(logits[token]).toBeGreaterThan(-Infinity);
      }),
      { numRuns: runs(500) },
    );
  });
});

import { describe, expect, it } from 'vitest';
import { logitDifferences, SHAPES } from './gate.ts';
import { runnerCases, withNumbers } from './runners.ts';

const TIMEOUT_MS = 120_000;

for (const one of runnerCases()) {
  const { name, absent, tolerance } = one;
  // A software renderer needs minutes for ten models.
  const skipped = absent ?? (name === 'webgpu' ? 'shapes are for cpu and cuda' : null);
  describe.skipIf(skipped !== null)(`attention on ${name} matches a float64 forward pass`, () => {
    it.each(SHAPES)(
      'head size $headSize, $group query heads per KV head',
      async (shape) => {
        const { worst } = await logitDifferences(one, shape);
        expect(worst).toBeLessThan(tolerance);
      },
      TIMEOUT_MS,
    );
  });
}

describe.each(['per-tensor', 'per-channel'] as const)('a KV cache of 8 bits, scaled %s', (kvScales) => {
  it.each(['float32', 'float16'] as const)('has the levels of the reference in %s', async (precision) => {
    const cpu = runnerCases().find(({ name }) => name === 'cpu')!;
    const one = withNumbers(cpu, { precision, kv: 'int8', kvScales });
    for (const shape of SHAPES) {
      const { worst, unrounded } = await logitDifferences(one, shape);
      expect(worst).toBeLessThan(one.tolerance);
      expect(unrounded).toBeGreaterThan(worst);
    }
  });
});

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { decode, prefill } from '../../origin/hub/greedy.ts';
import { float64Llama } from '../support/float64-llama.ts';
import { writeSyntheticModel } from '../support/synthetic/synthetic-model.ts';
import { runnerCases } from './runners.ts';

/** Attention kernels are chosen by head size and by query heads per KV head; these are the ones of real models. */
const SHAPES = [64, 128].flatMap((headSize) => [1, 2, 4, 6, 7].map((group) => ({ headSize, group })));
const PROMPT = 40;
const STEPS = 3;
const ROWS = 3;
const TIMEOUT_MS = 120_000;

for (const { name, absent, precision, tolerance, open } of runnerCases()) {
  // A software renderer needs minutes for ten models.
  const skipped = absent ?? (name === 'webgpu' ? 'shapes are for cpu and cuda' : null);
  describe.skipIf(skipped !== null)(`attention on ${name} matches a float64 forward pass`, () => {
    it.each(SHAPES)(
      'head size $headSize, $group query heads per KV head',
      async ({ headSize, group }) => {
        const directory = mkdtempSync(join(tmpdir(), 'continuo-shapes-'));
        onTestFinished(() => rmSync(directory, { recursive: true }));
        const shape = { headSize, heads: 2 * group, kvHeads: 2, layers: 1, contextLength: 64 };
        writeSyntheticModel(directory, { precision, ...shape });
        const reference = float64Llama.load(join(directory, 'model.onnx'));
        const runner = await open(directory, { slots: ROWS, prefillChunk: 32 });
        onTestFinished(() => runner.dispose());
        const tokens = Array.from({ length: PROMPT + STEPS }, (_, at) => (at * 31 + 7) % 256);
        const expected = reference.forward(tokens);
        await prefill(runner, 0, tokens.slice(0, PROMPT));
        for (let slot = 1; slot < ROWS; slot++) runner.copy(0, slot, PROMPT);
        for (let step = 0; step < STEPS; step++) {
          const position = PROMPT + step;
          const row = { token: tokens[position]!, position };
          const rows = await decode(runner, 0, Array<typeof row>(ROWS).fill(row), () => PROMPT);
          for (const logits of rows) {
            const worst = expected[position]!.reduce(
              (most, value, id) => Math.max(most, Math.abs(value - logits[id]!)),
              0,
            );
            expect(worst).toBeLessThan(tolerance);
          }
        }
      },
      TIMEOUT_MS,
    );
  });
}

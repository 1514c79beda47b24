import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decode, prefill } from '../../../origin/hub/greedy.ts';
import { float64Llama } from '../../support/float64-llama.ts';
import { writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';
import type { RunnerCase } from './runners.ts';

/** Attention kernels are chosen by head size and by query heads per KV head; these occur in real models. */
export const SHAPES = [64, 128].flatMap((headSize) => [1, 2, 4, 6, 7].map((group) => ({ headSize, group })));

const PROMPT = 40;
const STEPS = 3;
const ROWS = 3;

/**
 * Computes a prompt, copies its slot and decodes several rows.
 * @returns the largest difference of a logit from a forward pass in float64
 */
export async function worstDifference(
  { open, precision }: RunnerCase,
  { headSize, group }: (typeof SHAPES)[number],
): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'continuo-gate-'));
  try {
    const shape = { headSize, heads: 2 * group, kvHeads: 2, layers: 1, contextLength: 64 };
    writeSyntheticModel(directory, { precision, ...shape });
    const reference = float64Llama.load(join(directory, 'model.onnx'));
    const tokens = Array.from({ length: PROMPT + STEPS }, (_, at) => (at * 31 + 7) % 256);
    const expected = reference.forward(tokens);
    const differenceAt = (position: number, logits: Float32Array) =>
      expected[position]!.reduce((most, value, id) => Math.max(most, Math.abs(value - logits[id]!)), 0);
    const runner = await open(directory, { slots: ROWS, prefillChunk: 32 });
    try {
      let worst = differenceAt(PROMPT - 1, await prefill(runner, 0, tokens.slice(0, PROMPT)));
      for (let slot = 1; slot < ROWS; slot++) runner.copy(0, slot, PROMPT);
      for (let position = PROMPT; position < PROMPT + STEPS; position++) {
        const row = { token: tokens[position]!, position };
        const rows = await decode(runner, 0, Array<typeof row>(ROWS).fill(row), () => PROMPT);
        worst = Math.max(worst, ...rows.map((logits) => differenceAt(position, logits)));
      }
      return worst;
    } finally {
      runner.dispose();
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/**
 * Requires correct logits of every shape, before anything is measured.
 * @returns the largest difference
 * @throws Error that names the first shape at fault
 */
export async function requireCorrectLogits(runner: RunnerCase): Promise<number> {
  let worst = 0;
  for (const shape of SHAPES) {
    const difference = await worstDifference(runner, shape);
    worst = Math.max(worst, difference);
    if (difference <= runner.tolerance) continue;
    const which = `head size ${shape.headSize}, ${shape.group} query heads per KV head`;
    throw new Error(
      `logits differ from float64 by ${difference} with ${which}; allowed: ${runner.tolerance}`,
    );
  }
  return worst;
}

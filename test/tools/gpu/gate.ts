import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decode, prefill } from '../../../origin/hub/check/greedy.ts';
import { float64Llama } from '../../support/float64-llama.ts';
import { roundedKv } from '../../support/synthetic/quantized-kv.ts';
import { writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';
import type { RunnerCase } from './runners.ts';

/** Attention kernels are chosen by head size and by query heads per KV head; these occur in real models. */
export const SHAPES = [64, 128].flatMap((headSize) => [1, 2, 4, 6, 7].map((group) => ({ headSize, group })));

const PROMPT = 40;
const STEPS = 3;
const ROWS = 3;

export interface Differences {
  /** Largest difference of a logit from a forward pass in float64 whose KV is rounded as the model's. */
  readonly worst: number;
  /** The same from one whose KV is not rounded: what a KV cache of 8 bits loses. */
  readonly unrounded: number;
}

/** Computes a prompt, copies its slot and decodes several rows. */
export async function logitDifferences(
  { open, precision, kv = 'as-precision', kvScales = 'per-tensor' }: RunnerCase,
  { headSize, group }: (typeof SHAPES)[number],
): Promise<Differences> {
  const directory = mkdtempSync(join(tmpdir(), 'continuo-gate-'));
  try {
    // With one layer, whether a prompt attends to rounded keys changes no other key.
    const shape = { headSize, heads: 2 * group, kvHeads: 2, layers: 1, contextLength: 64 };
    const model = writeSyntheticModel(directory, { precision, kv, kvScales, ...shape });
    const reference = float64Llama.load(join(directory, 'model.onnx'));
    const tokens = Array.from({ length: PROMPT + STEPS }, (_, at) => (at * 31 + 7) % 256);
    const plain = reference.forward(tokens);
    const rounded = reference.forward(tokens, { roundKv: roundedKv(model) });
    const found = { worst: 0, unrounded: 0 };
    const compare = (position: number, logits: Float32Array, mayBePlain = false) => {
      const unrounded = maxDifference(plain[position]!, logits);
      const worst = maxDifference(rounded[position]!, logits);
      found.unrounded = Math.max(found.unrounded, unrounded);
      found.worst = Math.max(found.worst, mayBePlain ? Math.min(worst, unrounded) : worst);
    };
    const runner = await open(directory, { slots: ROWS, prefillChunk: 32 });
    try {
      // A run of a prompt may attend to its own keys before it rounds them.
      compare(PROMPT - 1, await prefill(runner, 0, tokens.slice(0, PROMPT)), true);
      for (let slot = 1; slot < ROWS; slot++) runner.copy(0, slot, PROMPT);
      for (let position = PROMPT; position < PROMPT + STEPS; position++) {
        const row = { token: tokens[position]!, position };
        const rows = await decode(runner, 0, Array<typeof row>(ROWS).fill(row), () => PROMPT);
        for (const logits of rows) compare(position, logits);
      }
      return found;
    } finally {
      runner.dispose();
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const maxDifference = (expected: Float64Array, logits: Float32Array): number =>
  expected.reduce((most, value, id) => Math.max(most, Math.abs(value - logits[id]!)), 0);

/**
 * Requires correct logits of every shape, before anything is measured.
 * @returns the largest differences
 * @throws Error that names the first shape at fault
 */
export async function requireCorrectLogits(runner: RunnerCase): Promise<Differences> {
  let [worst, unrounded] = [0, 0];
  for (const shape of SHAPES) {
    const found = await logitDifferences(runner, shape);
    worst = Math.max(worst, found.worst);
    unrounded = Math.max(unrounded, found.unrounded);
    if (found.worst <= runner.tolerance) continue;
    const which = `head size ${shape.headSize}, ${shape.group} query heads per KV head`;
    throw new Error(
      `logits differ from float64 by ${found.worst} with ${which}; allowed: ${runner.tolerance}`,
    );
  }
  return { worst, unrounded };
}

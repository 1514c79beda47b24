import { rmSync } from 'node:fs';
import { expect, onTestFinished } from 'vitest';
import { type BuildOptions, type BuiltModel, buildModel } from '../../../origin/export/build.ts';
import { openSafetensors } from '../../../origin/export/checkpoint/safetensors.ts';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { openModel } from '../../../origin/model/open/open-model.ts';
import { decodeRows, modelOptions, prefillPrompt, randomTokens } from '../model/synthetic-runner.ts';

/** Builds a checkpoint's directory; the result is removed when the test ends. */
export async function built(checkpoint: string, options: Partial<BuildOptions> = {}): Promise<BuiltModel> {
  const opened = await openSafetensors(checkpoint);
  const directory = `${checkpoint}-${options.precision ?? 'fp32'}`;
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  try {
    return await buildModel(opened, { precision: 'fp32', directory, ...options });
  } finally {
    await opened.close();
  }
}

/** The real runner on a model directory; disposed when the test ends. */
export async function openRunner(directory: string, slots = 9): Promise<ModelRunner> {
  const { runner } = await openModel(modelOptions(directory, { slots }));
  onTestFinished(() => runner.dispose());
  return runner;
}

export const largestDifference = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
  Array.from(a).reduce((most, value, index) => Math.max(most, Math.abs(value - b[index]!)), 0);

/** Lengths around the boundaries of prefill chunks. */
const LENGTHS = [1, 2, 31, 32, 33, 90, 64, 47];

/** Decodes eight sequences alone, each after its prefix moved, then together. Needs 9 slots. */
export async function expectSameBits(runner: ModelRunner): Promise<void> {
  const { minRows, vocabularySize, slots } = runner.shape;
  const prompts = LENGTHS.map((length, index) => randomTokens(length, index, vocabularySize));
  const alone: Float32Array[] = [];
  for (const [slot, prompt] of prompts.entries()) {
    await prefillPrompt(runner, slot, prompt);
    runner.copy(slot, slots - 1, prompt.length);
    // The slot below the copy is the idle row of a run that needs two.
    const rows = [
      { token: 0, position: 0 },
      { token: slot, position: prompt.length },
    ].slice(2 - minRows);
    alone.push((await decodeRows(runner, slots - minRows, rows)).at(-1)!);
  }
  for (const [slot, prompt] of prompts.entries()) await prefillPrompt(runner, slot, prompt);
  const rows = prompts.map((prompt, slot) => ({ token: slot, position: prompt.length }));
  const together = await decodeRows(runner, 0, rows);
  for (const [slot, logits] of together.entries()) expect(logits, `sequence ${slot}`).toEqual(alone[slot]);
}

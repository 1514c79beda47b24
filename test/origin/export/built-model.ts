import { rmSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import { type BuildOptions, type BuiltModel, buildModel } from '../../../origin/export/build.ts';
import { openSafetensors } from '../../../origin/export/checkpoint/safetensors.ts';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { openModel } from '../../../origin/model/open/open-model.ts';
import { modelOptions } from '../model/synthetic-runner.ts';

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

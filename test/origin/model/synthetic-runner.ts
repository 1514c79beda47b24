import { rmSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { openModel } from '../../../origin/model/open/open-model.ts';
import type { ModelOptions } from '../../../origin/model/open/plan-model.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { type SyntheticModel, writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';

/** Creates a directory that is removed when the test ends. */
export function temporaryDirectory(): string {
  const directory = newDirectory();
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export function modelOptions(directory: string, options: Partial<ModelOptions> = {}): ModelOptions {
  return { directory, slots: 4, threads: 2, kvLimitBytes: 2 ** 30, ...options };
}

/** The real runner on a random model; disposed when the test ends. */
export async function syntheticRunner(
  model: Partial<SyntheticModel> = {},
  options: Partial<ModelOptions> = {},
): Promise<{ runner: ModelRunner; directory: string }> {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, model);
  const { runner } = await openModel(modelOptions(directory, options));
  onTestFinished(() => runner.dispose());
  return { runner, directory };
}

export function randomTokens(length: number, seed: number, vocabulary = 256): Int32Array {
  return Int32Array.from({ length }, (_, i) => ((i + 1) * (2 * seed + 31) + ((i * i) % 17)) % vocabulary);
}

const never = new AbortController().signal;

/** Prefills a whole prompt chunk by chunk; the logits of its last position. */
export async function prefillPrompt(
  runner: ModelRunner,
  slot: number,
  prompt: Int32Array,
  chunk = runner.shape.prefillChunk,
): Promise<Float32Array> {
  let logits = new Float32Array();
  for (let start = 0; start < prompt.length; start += chunk) {
    const tokens = prompt.subarray(start, start + chunk);
    const isLast = start + chunk >= prompt.length;
    const logitsAt = isLast ? Int32Array.of(tokens.length - 1) : new Int32Array();
    logits = (await runner.prefill({ slot, start, tokens, logitsAt }, never)).slice();
  }
  return logits;
}

/** One decode step; a copy of every row's logits. */
export async function decodeRows(
  runner: ModelRunner,
  firstSlot: number,
  rows: readonly { readonly token: number; readonly position: number }[],
): Promise<Float32Array[]> {
  const logits = await runner.decode({
    firstSlot,
    rows: rows.length,
    tokens: Int32Array.from(rows, ({ token }) => token),
    positions: Int32Array.from(rows, ({ position }) => position),
  });
  const size = runner.shape.vocabularySize;
  return rows.map((_, row) => logits.slice(row * size, (row + 1) * size));
}

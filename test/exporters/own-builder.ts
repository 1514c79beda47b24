import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildModel } from '../../origin/export/build.ts';
import { openSafetensors } from '../../origin/export/checkpoint/safetensors.ts';
import { errorMessage } from '../../shared/error-details.ts';
import { compareFamily, LOGIT_TOLERANCE } from './family-comparison.ts';

/** Builds the models of families.py with this repository's builder and compares them with transformers. */

export interface FamilyResult {
  readonly cells: readonly string[];
  readonly failed: boolean;
}

/**
 * Writes the models unless a previous run did.
 * @param script families.py
 * @param only one case; absent = all
 */
export function writeFamilies(python: string, script: string, models: string, only?: string): string[] {
  if (only !== undefined || !existsSync(models) || readdirSync(models).length === 0) {
    const chosen = only === undefined ? [] : ['--case', only];
    const { status } = spawnSync(python, [script, models, ...chosen], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    if (status !== 0) throw new Error(`${script} failed`);
  }
  return only === undefined ? readdirSync(models).toSorted() : [only];
}

export async function familyResult(name: string, models: string): Promise<FamilyResult> {
  const source = join(models, name);
  const directory = join(source, 'built');
  try {
    rmSync(directory, { recursive: true, force: true });
    const checkpoint = await openSafetensors(source);
    try {
      await buildModel(checkpoint, { precision: 'fp32', directory });
    } finally {
      await checkpoint.close();
    }
    const { maxDifference, wrong, inexact } = await compareFamily(directory, source);
    const isFar = !(maxDifference <= LOGIT_TOLERANCE);
    const notes = [
      wrong.length > 0 ? `tokens differ after prompts of ${wrong.join(', ')}` : '',
      inexact.length > 0 ? `${inexact.join(' and ')} changes bits` : '',
    ].filter((note) => note !== '');
    return {
      cells: [name, maxDifference.toExponential(1), notes.join('; ')],
      failed: isFar || notes.length > 0,
    };
  } catch (error) {
    return { cells: [name, '-', errorMessage(error)], failed: true };
  }
}

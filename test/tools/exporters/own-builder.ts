import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Table from 'cli-table3';
import { buildModel } from '../../../origin/export/build.ts';
import { openSafetensors } from '../../../origin/export/checkpoint/safetensors.ts';
import { errorMessage } from '../../../shared/error-details.ts';
import { compareFamily, LOGIT_TOLERANCE } from './family-comparison.ts';

/**
 * Builds the models of families.py with this repository's builder, compares them with transformers, and
 * prints a table.
 * @param only one case; absent = all
 * @returns whether all have the logits and tokens of transformers, and the same bits in a batch and after a
 *   cached prefix
 */
export async function checkFamilies(
  python: string,
  script: string,
  models: string,
  only?: string,
): Promise<boolean> {
  const chosen = only === undefined ? [] : ['--case', only];
  const written = spawnSync(python, [script, models, ...chosen], { stdio: ['ignore', 'inherit', 'inherit'] });
  if (written.status !== 0) throw new Error(`${script} failed`);
  const table = new Table({
    head: ['model', 'largest difference of a logit', 'note'],
    style: { head: [], border: [] },
  });
  const found = readdirSync(models).filter((name) => existsSync(join(models, name, 'case.json')));
  let passed = 0;
  const names = only === undefined ? found.toSorted() : [only];
  for (const name of names) {
    const { cells, failed } = await familyResult(name, models);
    table.push(cells);
    if (!failed) passed += 1;
  }
  console.log(table.toString());
  console.log(`${passed} of ${names.length} pass`);
  return names.length > 0 && passed === names.length;
}

async function familyResult(name: string, models: string): Promise<{ cells: string[]; failed: boolean }> {
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
    const notes = [
      maxDifference <= LOGIT_TOLERANCE ? '' : 'logits differ',
      wrong.length > 0 ? `tokens differ after prompts of ${wrong.join(', ')}` : '',
      inexact.length > 0 ? `${inexact.join(' and ')} changes bits` : '',
    ].filter((note) => note !== '');
    return { cells: [name, maxDifference.toExponential(1), notes.join('; ')], failed: notes.length > 0 };
  } catch (error) {
    return { cells: [name, '-', errorMessage(error)], failed: true };
  }
}

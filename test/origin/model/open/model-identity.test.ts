import { readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { modelIdentity } from '../../../../origin/model/open/model-identity.ts';
import { openModel } from '../../../../origin/model/open/open-model.ts';
import { newDirectory } from '../../../support/new-directory.ts';
import { writeSyntheticModel } from '../../../support/synthetic/synthetic-model.ts';

function newModel(): string {
  const directory = newDirectory();
  writeSyntheticModel(directory, { vocabulary: 320 });
  return directory;
}

async function identityOf(directory: string, options: object = {}, deviceName = 'cpu'): Promise<string> {
  const model = { directory, slots: 2, prefillChunk: 16, threads: 1, kvLimitBytes: 2 ** 30, ...options };
  const { runner } = await openModel(model);
  try {
    return await modelIdentity(model, runner, deviceName);
  } finally {
    runner.dispose();
  }
}

it('stays the same over restarts and with another number of slots', async () => {
  const directory = newModel();
  const identity = await identityOf(directory);
  expect(await identityOf(directory)).toBe(identity);
  expect(await identityOf(directory, { slots: 5, contextLength: 100 })).toBe(identity);
});

it('changes with device, chunk, threads, and the time of a file', async () => {
  const directory = newModel();
  const identities = new Set([await identityOf(directory)]);
  identities.add(await identityOf(directory, { prefillChunk: 32 }));
  identities.add(await identityOf(directory, { threads: 2 }));
  identities.add(await identityOf(directory, {}, 'Card A (CUDA card 0)'));
  utimesSync(join(directory, 'model.onnx'), 1, 1);
  identities.add(await identityOf(directory));
  expect(identities.size).toBe(5);
});

it('changes with the weights, although names, sizes and times are the same', async () => {
  const directory = newModel();
  const path = join(directory, 'model.onnx');
  utimesSync(path, 1, 1);
  const identity = await identityOf(directory);
  const weights = readFileSync(path);
  // A weight in the middle of the file.
  const at = Math.floor(weights.length / 8) * 4;
  weights[at + 1]! ^= 64;
  writeFileSync(path, weights);
  utimesSync(path, 1, 1);
  expect(statSync(path)).toMatchObject({ size: weights.length, mtimeMs: 1000 });
  expect(await identityOf(directory)).not.toBe(identity);
});

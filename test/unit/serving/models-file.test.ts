import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { readConfig } from '../../../origin/config.ts';
import { readModelsFile } from '../../../origin/serving/models-file.ts';

const BASE = readConfig({ CONTINUO_ORIGIN_SECRET: 'not to be told' }).model;

function read(providers: readonly (string | undefined)[]) {
  const folder = mkdtempSync(join(tmpdir(), 'continuo-models-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'models.json');
  const models = providers.map((provider, index) => ({ name: `m${index}`, directory: '.', provider }));
  writeFileSync(file, JSON.stringify({ models }));
  return readModelsFile(file, BASE).models.map(({ engine }) => engine.device.provider);
}

it('one model on WebGPU may stand beside others; two, which would crash the process, are refused', () => {
  expect(read(['webgpu', 'cuda', undefined, 'cuda'])).toEqual(['webgpu', 'cuda', 'cpu', 'cuda']);
  for (const both of [
    ['webgpu', 'webgpu'],
    ['auto', 'webgpu'],
    ['auto', 'auto'],
  ]) {
    expect(() => read(['cpu', ...both])).toThrow(/models\.2\.provider: only one model of an origin/);
  }
});

import { copyFileSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import type { GenerationRequest } from '../../../shared/generation.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { writeByteTokenizer } from '../../support/synthetic/byte-tokenizer.ts';
import { type SyntheticModel, writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';
import { writeLlama } from '../export/written-checkpoint.ts';
import { eventsOf } from '../http/generation-events.ts';
import { OriginProcess } from '../http/origin-process.ts';

const directory = newDirectory();
const file = join(directory, 'models.json');

function writeModel(name: string, options: Partial<SyntheticModel> = {}): string {
  const written = join(directory, name);
  const { vocabulary } = writeSyntheticModel(written, { vocabulary: 320, seed: 3, ...options });
  writeByteTokenizer(written, vocabulary);
  return written;
}

/** Writes one directory for each kind of fault; returns what its reason must say, by model. */
function writeFaults(): Record<string, RegExp> {
  rmSync(join(writeModel('no-graph'), 'model.onnx'));
  writeFileSync(join(writeModel('damaged-graph'), 'model.onnx'), 'not a graph');
  writeFileSync(join(writeModel('damaged-config'), 'config.json'), '{');
  rmSync(join(writeModel('no-tokenizer'), 'tokenizer.json'));
  const weights = join(writeModel('damaged-weights', { externalData: true }), 'model.onnx.data');
  writeFileSync(weights, 'short');
  mkdirSync(join(directory, 'empty'));
  return {
    missing: /the model directory .* is missing/,
    empty: /config\.json|tokenizer\.json|\.onnx/,
    'no-graph': /\.onnx/,
    'damaged-graph': /model\.onnx/,
    'damaged-config': /config\.json/,
    'no-tokenizer': /tokenizer\.json/,
    'damaged-weights': /model\.onnx/,
  };
}

let faults: Record<string, RegExp>;
beforeAll(() => {
  faults = writeFaults();
  writeModel('sound');
});

const write = (...names: readonly string[]) =>
  writeFileSync(file, JSON.stringify({ models: names.map((name) => ({ name, directory: name, slots: 1 })) }));

const start = () =>
  new OriginProcess({
    CONTINUO_MODELS_FILE: file,
    CONTINUO_THREADS: '1',
    XDG_CACHE_HOME: join(directory, 'cache'),
  });

test('models at fault, in every kind of fault, are refused by name while the others are served', async () => {
  write(...Object.keys(faults), 'sound');
  const origin = start();
  onTestFinished(() => void origin.child.kill('SIGKILL'));
  await origin.line('loaded', { model: 'sound' });
  const request: Partial<GenerationRequest> = { maxTokens: 4, ignoreEos: true };
  const served = await origin.generate({ ...request, model: 'sound' });
  expect((await eventsOf(served)).at(-1)).toMatchObject({ type: 'done' });
  for (const [name, reason] of Object.entries(faults)) {
    expect(await origin.line('loading failed', { model: name })).toMatchObject({ permanent: true });
    const refused = await origin.generate({ ...request, model: name });
    expect([refused.status, refused.headers.get('x-should-retry')], name).toEqual([503, 'false']);
    expect((await origin.models())[name]?.reason, name).toMatch(reason);
  }
  expect(await (await origin.call('/health')).json()).toMatchObject({ status: 'ready' });
});

test('models are built from weights before they are served, and one that cannot be built is refused by name', async () => {
  const { vocabulary } = writeLlama(join(directory, 'llama'), { vocabulary: 320 }).model;
  writeByteTokenizer(join(directory, 'llama', 'checkpoint'), vocabulary);
  const built = { name: 'built', model: './llama/checkpoint', precision: 'fp32', slots: 1 };
  const missing = { name: 'not-there', model: './none.gguf', slots: 1 };
  writeFileSync(file, JSON.stringify({ models: [missing, built] }));
  const origin = start();
  onTestFinished(() => void origin.child.kill('SIGKILL'));
  await origin.line('loaded', { model: 'built' });
  const models = await origin.models();
  expect(models.built?.build).toMatchObject({ precision: 'fp32', source: 'checkpoint' });
  expect(models['not-there']?.reason).toBe('there is no file or directory ./none.gguf');
  const builds = join(directory, 'cache', 'continuo', 'models');
  const [name] = readdirSync(builds).filter((one) => one.startsWith('checkpoint-'));
  const { mtimeMs } = statSync(join(builds, name!));
  origin.child.kill('SIGHUP');
  await origin.line('models reloaded');
  expect(statSync(join(builds, name!)).mtimeMs).toBe(mtimeMs);
});

test('a reload serves a model whose files were mended', async () => {
  write('empty', 'sound');
  const origin = start();
  onTestFinished(() => void origin.child.kill('SIGKILL'));
  await origin.line('loaded', { model: 'sound' });
  for (const name of ['config.json', 'model.onnx', 'tokenizer.json', 'tokenizer_config.json']) {
    copyFileSync(join(directory, 'sound', name), join(directory, 'empty', name));
  }
  origin.child.kill('SIGHUP');
  await origin.line('loaded', { model: 'empty' });
  expect((await origin.models()).empty).toMatchObject({ state: 'loaded', contextLength: 512 });
});

test('an origin whose models are all at fault does not start, and names the first', async () => {
  write('missing', 'no-graph');
  const origin = start();
  expect(await origin.exit).toBe(1);
  expect(origin.stderr).toMatch(/^continuo origin: missing: the model directory .* is missing/);
});

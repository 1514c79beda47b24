import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readConfig } from '../../../origin/config/config.ts';
import { readModels } from '../../../origin/serving/models-file.ts';
import { newDirectory } from '../../support/new-directory.ts';

const BASE = readConfig({ CONTINUO_ORIGIN_SECRET: 'not to be told, at least 32 bytes' }).model;

function modelsFile(text: string): string {
  const folder = newDirectory();
  const file = join(folder, 'models.json');
  writeFileSync(file, text);
  return file;
}

function read(models: readonly object[], base = BASE) {
  const named = models.map((model, index) => ({ name: `m${index}`, directory: '.', ...model }));
  return readModels({ modelsFile: modelsFile(JSON.stringify({ models: named })), model: base }).models.map(
    ({ engine }) => engine.device,
  );
}

it('accepts several models on any provider', () => {
  const providers = ['webgpu', 'cuda', 'cpu', 'webgpu', 'auto', 'cuda'];
  const devices = read(providers.map((provider) => ({ provider })));
  expect(devices.map(({ provider }) => provider)).toEqual(providers);
});

it.each(['q8a8', 'int4', 'q4f32'])('a model that is built may have the precision %s', (precision) => {
  const file = modelsFile(JSON.stringify({ models: [{ name: 'm', model: 'owner/name', precision }] }));
  expect(readModels({ modelsFile: file, model: BASE }).models[0]!.source).toMatchObject({ precision });
});

it('a model with a provider without device options inherits none from the environment', () => {
  const base = readConfig({
    CONTINUO_ORIGIN_SECRET: 'not to be told, at least 32 bytes',
    CONTINUO_PROVIDER: 'cuda',
    CONTINUO_DEVICE_ID: '1',
    CONTINUO_DEVICE_MEMORY_MIB: '2',
  }).model;
  const given = { deviceId: 1, memoryBytes: 2 ** 21 };
  const none = { deviceId: null, memoryBytes: null };
  const models = [{}, { provider: 'auto' }, { provider: 'cpu' }, { provider: 'cpu', deviceId: 3 }];
  expect(read(models, base)).toEqual([
    { provider: 'cuda', ...given },
    { provider: 'auto', ...given },
    { provider: 'cpu', ...none },
    { provider: 'cpu', ...none, deviceId: 3 },
  ]);
  expect(read([{ provider: 'webgpu' }], base)).toEqual([{ provider: 'webgpu', ...none }]);
});

it('a model may have its own limit of prefixes on disk', () => {
  const base = readConfig({
    CONTINUO_ORIGIN_SECRET: 'not to be told, at least 32 bytes',
    CONTINUO_PREFIX_CACHE_DIR: '/cache',
    CONTINUO_PREFIX_CACHE_DISK_MIB: '5',
  }).model;
  const models = [{}, { prefixCacheDiskMiB: 2 }].map((fields) => ({ name: 'm', directory: '.', ...fields }));
  const disks = models.map(
    (model) =>
      readModels({ modelsFile: modelsFile(JSON.stringify({ models: [model] })), model: base }).models[0]
        ?.engine.prefixDisk,
  );
  expect(disks).toEqual([
    { directory: '/cache', limitBytes: 5 * 2 ** 20 },
    { directory: '/cache', limitBytes: 2 * 2 ** 20 },
  ]);
});

it.each([
  ['{"models": [\n  {"name": "a",}\n]}', /models\.json is not JSON \(.*line 2 column 16/],
  [
    '{"models": [{"name": "a", "directory": ".", "infill": "on"}]}',
    /models\.0\.infill: expected auto, off or a template$/,
  ],
  [
    '{"models": [{"name": "a", "directory": ".", "infill": {"layout": ["prefix"], "prefix": "x", "suffix": "y"}}]}',
    /models\.0\.infill\.layout: needs prefix, P, suffix and S once each$/,
  ],
  ['{"models": [{"name": "a"}]}', /models\.0\.directory: expected either directory or model$/],
  [
    '{"models": [{"name": "a", "directory": ".", "model": "owner/name"}]}',
    /models\.0\.directory: expected either directory or model$/,
  ],
  [
    '{"models": [{"name": "a", "model": "owner/name", "variant": "q4"}]}',
    /models\.0\.variant: only for a directory; write it after the name: owner\/name:variant$/,
  ],
  [
    '{"models": [{"name": "a", "directory": ".", "precision": "q4"}]}',
    /models\.0\.precision: only with model, which is built$/,
  ],
  ['{"models": [{"name": "a", "directory": "a", "slot": 1}]}', /models\.0: .*slot/],
  ['{"models": [{"name": "a", "directory": "a", "slots": 0}]}', /models\.0\.slots: /],
  [
    '{"models": [{"name": "a", "directory": "x", "aliases": ["c"]}, {"name": "b", "directory": "x", "aliases": ["c"]}]}',
    /models\.1\.aliases\.0: the name c is used twice/,
  ],
])('a fault in %s is one line with its place', (text, message) => {
  const reading = () => readModels({ modelsFile: modelsFile(text), model: BASE });
  expect(reading).toThrow(message);
  expect(reading).not.toThrow(/\n/);
});

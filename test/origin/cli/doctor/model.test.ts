import { symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { checkModels } from '../../../../origin/cli/doctor/model.ts';
import type { Machine } from '../../../../origin/model/device/device-choice.ts';
import { bundledFolder } from '../../../../origin/model/ort/ort-library.ts';
import { newDirectory } from '../../../support/new-directory.ts';

/** A machine without CUDA libraries and without Vulkan devices. */
const BARE: Machine = {
  platform: 'linux',
  arch: 'x64',
  cuda: { folder: '/nowhere', map: () => null },
  adapters: () => [],
  driver: () => ({
    version: 13_000,
    cards: [{ name: 'Card A', capability: [9, 0] as const }],
    freeBytes: () => 0,
  }),
};

/** A machine on which every CUDA library loads; ONNX Runtime's own library plays the provider. */
function equipped(): Machine {
  const folder = newDirectory();
  for (const name of ['shared', 'cuda']) {
    symlinkSync(
      path.join(bundledFolder(), 'libonnxruntime.so.1'),
      path.join(folder, `libonnxruntime_providers_${name}.so`),
    );
  }
  return { ...BARE, cuda: { folder, map: () => null } };
}

test('the built-in model on the CPU is ok', async () => {
  const findings = await checkModels({}, BARE, false);
  expect(findings.map(({ status, name }) => [status, name])).toEqual([
    ['ok', 'Model continuo-mini'],
    ['ok', 'Provider'],
    ['ok', 'CUDA'],
  ]);
  expect(findings[0]?.text).toMatch(/continuo-mini, \d+ slots of 2048 positions$/);
});

test('a missing model directory fails and is named, also in a models file', async () => {
  expect((await checkModels({ CONTINUO_MODEL_DIR: '/no/model' }, BARE, false))[0]).toMatchObject({
    status: 'fail',
    name: 'Model model',
    text: expect.stringMatching(/^the model directory \/no\/model is missing/),
    advice: expect.stringContaining('continuo model pull'),
  });
  const file = path.join(newDirectory(), 'models.json');
  writeFileSync(file, JSON.stringify({ models: [{ name: 'a', directory: '/no/a' }] }));
  const [finding] = await checkModels({ CONTINUO_MODELS_FILE: file }, BARE, false);
  expect(finding).toMatchObject({ status: 'fail', name: 'Model a' });
  writeFileSync(file, '{');
  const broken = await checkModels({ CONTINUO_MODELS_FILE: file }, BARE, false);
  expect(broken).toEqual([
    expect.objectContaining({ status: 'fail', text: expect.stringContaining('JSON') }),
  ]);
});

test('a wrong setting of the model fails', async () => {
  expect(await checkModels({ CONTINUO_SLOTS: 'many' }, BARE, false)).toEqual([
    expect.objectContaining({
      status: 'fail',
      text: expect.stringMatching(/^CONTINUO_SLOTS: received "many"/),
    }),
  ]);
});

const cudaOf = async (provider: string, machine: Machine, hasCard: boolean) => {
  const findings = await checkModels({ CONTINUO_PROVIDER: provider }, machine, hasCard);
  return findings.at(-1);
};

test('missing CUDA libraries fail if a model needs them, and warn if there is a card', async () => {
  const text = expect.stringMatching(
    /^CUDA lacks libonnxruntime_providers_shared\.so.*; run continuo cuda-install$/,
  );
  const missing = { text };
  expect(await cudaOf('cuda', BARE, false)).toMatchObject({ status: 'fail', ...missing });
  expect(await cudaOf('cpu', BARE, true)).toMatchObject({ status: 'warn', ...missing });
  expect(await cudaOf('cuda', equipped(), true)).toMatchObject({ status: 'ok', text: 'complete' });
  expect(await cudaOf('cpu', equipped(), true)).toMatchObject({
    status: 'warn',
    advice: expect.stringContaining('CONTINUO_PROVIDER=cuda'),
  });
});

test('a driver that finds no card fails if a model needs CUDA', async () => {
  const driver = () => ({ version: 13_000, cards: [], freeBytes: () => 0 });
  expect(await cudaOf('cuda', { ...equipped(), driver }, true)).toMatchObject({
    status: 'fail',
    text: expect.stringContaining('finds no CUDA card'),
  });
});

test('the provider auto warns if it falls back to the CPU', async () => {
  const [, provider] = await checkModels({ CONTINUO_PROVIDER: 'auto' }, BARE, false);
  expect(provider).toMatchObject({
    status: 'warn',
    text: expect.stringContaining('there is no Vulkan device'),
  });
  const [, found] = await checkModels({ CONTINUO_PROVIDER: 'auto' }, equipped(), true);
  expect(found).toMatchObject({ status: 'ok', text: 'auto chooses cuda' });
});

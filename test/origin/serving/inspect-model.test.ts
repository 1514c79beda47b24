import { mkdtempSync, symlinkSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readConfig } from '../../../origin/config/config.ts';
import { inspectModels } from '../../../origin/serving/inspect-models.ts';
import { NO_MEMORY_LIMITS } from '../../../origin/serving/memory-budget.ts';
import { writeByteTokenizer } from '../../support/synthetic/byte-tokenizer.ts';
import { writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';

test('ignores broken links, and a changed file changes the key', () => {
  const directory = mkdtempSync(join(tmpdir(), 'continuo-model-'));
  writeByteTokenizer(directory, writeSyntheticModel(directory, { vocabulary: 320 }).vocabulary);
  const environment = {
    CONTINUO_ORIGIN_SECRET: 'not to be told, at least 32 bytes',
    CONTINUO_MODEL_DIR: directory,
  };
  const keyOf = () => inspectModels([readConfig(environment).model], NO_MEMORY_LIMITS).models[0]?.key;
  utimesSync(directory, 1, 1);
  const key = keyOf();
  symlinkSync('/nowhere', join(directory, '.#config.json'));
  expect(keyOf()).toBe(key);
  utimesSync(join(directory, 'model.onnx'), 1, 1);
  expect(keyOf()).not.toBe(key);
});

test('refuses device options that the provider ignores before loading anything', () => {
  const directory = mkdtempSync(join(tmpdir(), 'continuo-model-'));
  writeByteTokenizer(directory, writeSyntheticModel(directory, { vocabulary: 320 }).vocabulary);
  const environment = {
    CONTINUO_ORIGIN_SECRET: 'not to be told, at least 32 bytes',
    CONTINUO_MODEL_DIR: directory,
  };
  const { model } = readConfig({ ...environment, CONTINUO_DEVICE_ID: '1' });
  expect(inspectModels([model], NO_MEMORY_LIMITS).faulty[0]?.reason).toMatch(
    /a device id is set, but the provider cpu ignores it; remove it or choose cuda$/,
  );
});

import { cpSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../../origin/config/config.ts';
import { inspectModels } from '../../../origin/serving/inspect-models.ts';
import { NO_MEMORY_LIMITS } from '../../../origin/serving/memory-budget.ts';
import { fingerprintOf } from '../../../origin/serving/service.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { writeByteTokenizer } from '../../support/synthetic/byte-tokenizer.ts';
import { writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';

test('ignores broken links, and a changed file changes the key', () => {
  const directory = newDirectory();
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
  const directory = newDirectory();
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

test.each([
  [
    'a generation_config.json that asks for the impossible',
    'generation_config.json',
    '{"temperature":-1}',
    /generation_config\.json: temperature: /,
  ],
  ['a tokenizer cut in the middle', 'tokenizer.json', '{"model":', /tokenizer\.json is not valid JSON/],
  [
    'a tokenizer of another kind',
    'tokenizer.json',
    '{"model":{"type":"WordLevel"}}',
    /tokenizer\.json: model\.type/,
  ],
])('refuses %s with one line', (_, name, content, message) => {
  const directory = newDirectory();
  writeByteTokenizer(directory, writeSyntheticModel(directory, { vocabulary: 320 }).vocabulary);
  writeFileSync(join(directory, name), content);
  const { model } = readConfig({
    CONTINUO_ORIGIN_SECRET: 'not to be told, at least 32 bytes',
    CONTINUO_MODEL_DIR: directory,
    CONTINUO_GENERATION_CONFIG: 'true',
  });
  const [fault] = inspectModels([model], NO_MEMORY_LIMITS).faulty;
  expect(fault?.reason).toMatch(message);
  expect(fault?.reason).not.toContain('\n');
});

describe('the fingerprint', () => {
  const modelIn = (directory: string, changes: Readonly<Record<string, string>> = {}) => {
    const secret = 'not to be told, at least 32 bytes';
    const environment = { CONTINUO_ORIGIN_SECRET: secret, CONTINUO_MODEL_DIR: directory, ...changes };
    const { models } = inspectModels([readConfig(environment).model], NO_MEMORY_LIMITS);
    return fingerprintOf(models[0]!);
  };
  const written = () => {
    const directory = newDirectory();
    writeByteTokenizer(directory, writeSyntheticModel(directory, { vocabulary: 320 }).vocabulary);
    return directory;
  };

  test('is that of a copy, whatever the times, the place and the number of several slots', () => {
    const directory = written();
    const copy = newDirectory();
    cpSync(directory, copy, { recursive: true });
    utimesSync(join(copy, 'model.onnx'), 1, 1);
    writeFileSync(join(copy, 'README.md'), 'A copy.');
    expect(modelIn(copy, { CONTINUO_SLOTS: '3', CONTINUO_THREADS: '1' })).toBe(
      modelIn(directory, { CONTINUO_SLOTS: '2' }),
    );
  });

  test('changes with the content of graph, weights and settings, and with what changes results', () => {
    const directory = written();
    const seen = [modelIn(directory), modelIn(directory, { CONTINUO_CONTEXT: '64' })];
    seen.push(modelIn(directory, { CONTINUO_SLOTS: '1' }));
    const change = (file: string, edit: (bytes: Buffer) => Buffer) => {
      writeFileSync(join(directory, file), edit(readFileSync(join(directory, file))));
      seen.push(modelIn(directory));
    };
    change('model.onnx', (bytes) => {
      // Of the weights, a bit in the middle of the file.
      bytes[bytes.length >> 1]! ^= 1;
      return bytes;
    });
    change('tokenizer.json', (bytes) => Buffer.from(`${bytes.toString()} `));
    expect(new Set(seen).size).toBe(seen.length);
  });
});

import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openGguf } from '../../../../origin/export/gguf/gguf-checkpoint.ts';
import { temporaryDirectory } from '../../../origin/model/synthetic-runner.ts';
import { writeByteTokenizer } from '../../../support/synthetic/byte-tokenizer.ts';
import { llamaConfig, writeSyntheticModel } from '../../../support/synthetic/synthetic-model.ts';
import { writeRandomGguf } from './random-gguf.ts';

test('a GGUF file for a rival has the sizes of the model and random halves in every matrix', async () => {
  const directory = temporaryDirectory();
  const model = writeSyntheticModel(directory, { vocabulary: 300, precision: 'float16' });
  writeByteTokenizer(directory, model.vocabulary);
  const file = path.join(directory, 'model.gguf');
  writeRandomGguf(file, directory);
  const checkpoint = openGguf(file);
  onTestFinished(() => checkpoint.close());
  const { eos_token_id, ...sizes } = llamaConfig(model);
  expect(checkpoint.config).toMatchObject({ ...sizes, eos_token_id: [eos_token_id] });
  const down = checkpoint.tensors.get('model.layers.1.mlp.down_proj.weight');
  expect(down).toMatchObject({ shape: [64, 96] });
  const values = await checkpoint.readRows('lm_head.weight', 0, 300);
  const square = values.reduce((sum, value) => sum + value * value, 0) / values.length;
  expect(Math.sqrt(square)).toBeCloseTo(0.02, 3);
});

import { readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { openModel } from '../../../origin/model/open/open-model.ts';
import { planModel } from '../../../origin/model/open/plan-model.ts';
import { writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';
import { editConfig, editModel, type Fault, remove } from './fault.ts';
import { LAYOUT_FAULTS } from './layout-faults.ts';
import { modelOptions, syntheticRunner, temporaryDirectory } from './synthetic-runner.ts';

const FAULTS: readonly Fault[] = [
  {
    fault: 'no config.json',
    damage: remove('config.json'),
    message: /has neither config\.json nor genai_config\.json$/,
  },
  {
    fault: 'no model.onnx',
    damage: remove('model.onnx'),
    message: /has no model\.onnx, model_q4\.onnx or similar, nor has its folder onnx$/,
  },
  {
    fault: 'broken JSON',
    damage: (directory) => writeFileSync(join(directory, 'config.json'), '{"vocab_size": '),
    message: /^config\.json is not valid JSON$/,
  },
  {
    fault: 'a field of the wrong type',
    damage: editConfig({ vocab_size: '256' }),
    message: /^config\.json: vocab_size: /,
  },
  {
    fault: 'a field missing',
    damage: editConfig({ num_hidden_layers: undefined }),
    message: /^config\.json: num_hidden_layers: /,
  },
  {
    fault: 'broken generation_config.json',
    damage: editConfig({ eos_token_id: 'end' }, 'generation_config.json'),
    message: /^generation_config\.json: eos_token_id: /,
  },
  {
    fault: 'an end token outside the vocabulary',
    damage: editConfig({ eos_token_id: [255, 256] }, 'generation_config.json'),
    message: /token id 256 is outside the vocabulary of 256$/,
  },
  {
    fault: 'another number of layers',
    damage: editConfig({ num_hidden_layers: 3 }),
    message: /^model\.onnx has layers 2 but config\.json says num_hidden_layers 3$/,
  },
  {
    fault: 'another number of KV heads',
    damage: editConfig({ num_key_value_heads: 4 }),
    message: /KV heads 2 but config\.json says num_key_value_heads 4$/,
  },
  {
    fault: 'another head size',
    damage: editConfig({ head_dim: 32 }),
    message: /head size 16 but config\.json says head_dim 32$/,
  },
  {
    fault: 'another vocabulary',
    damage: editConfig({ vocab_size: 300 }),
    message: /vocabulary 256 but config\.json says vocab_size 300$/,
  },
  {
    fault: 'an unknown input',
    model: { positionIds: true },
    damage: editModel('position_ids', 'token_typeid'),
    message: /^model\.onnx has unsupported inputs: token_typeid$/,
  },
  {
    fault: 'an attention ONNX Runtime does not have',
    damage: editModel('GroupQueryAttention', 'OtherQueryAttention'),
    message: /^ONNX Runtime cannot load model\.onnx: .*OtherQueryAttention/,
  },
  {
    fault: 'a layer without its past',
    damage: editModel('past_key_values.1.value', 'past_key_values.5.value'),
    message: /^model\.onnx lacks the input past_key_values\.1\.value$/,
  },
  {
    fault: 'no logits',
    damage: editModel('logits', 'scores'),
    message: /^model\.onnx lacks the output logits$/,
  },
  {
    fault: 'an operator ONNX Runtime does not have',
    damage: editModel('Sigmoid', 'Sigmoit'),
    message: /^ONNX Runtime cannot load model\.onnx: .*Sigmoit/,
  },
  {
    fault: 'a truncated model',
    damage: (directory) => truncateSync(join(directory, 'model.onnx'), 100_000),
    message: /^model\.onnx is truncated$/,
  },
  {
    fault: 'an empty model',
    damage: (directory) => truncateSync(join(directory, 'model.onnx'), 0),
    message: /^model\.onnx holds no graph$/,
  },
  {
    fault: 'something else than a model',
    damage: (directory) => writeFileSync(join(directory, 'model.onnx'), 'version https://git-lfs.github.com'),
    message: /^model\.onnx /,
  },
  {
    fault: 'no external weights',
    model: { externalData: true },
    damage: remove('model.onnx.data'),
    message: /^model\.onnx keeps its weights in model\.onnx\.data, which is missing in .*$/,
  },
  {
    fault: 'truncated external weights',
    model: { externalData: true },
    damage: (directory) => truncateSync(join(directory, 'model.onnx.data'), 100_000),
    message: /^model\.onnx needs \d+ bytes of model\.onnx\.data for .+, but the file has 100000$/,
  },
  {
    fault: 'weights that are not numbers',
    model: { externalData: true },
    damage: (directory) => {
      const path = join(directory, 'model.onnx.data');
      writeFileSync(path, new Uint8Array(readFileSync(path).length).fill(0xff));
    },
    message: /^model\.onnx gives logits that are not finite numbers$/,
  },
  {
    fault: 'more context than the model has',
    options: { contextLength: 513 },
    message: /^context of 513 positions: the model supports 512$/,
  },
  {
    fault: 'a KV cache larger than allowed',
    options: { slots: 64, kvLimitBytes: 2 ** 24 - 1 },
    message:
      /^KV cache does not fit: 64 slots × 512 positions × 512 bytes = 16 MiB, but 15 MiB are available; set CONTINUO_SLOTS or CONTINUO_CONTEXT lower$/,
  },
  ...LAYOUT_FAULTS,
];

it.each(FAULTS)('$fault stops the start with one clear line', async (wrong) => {
  const { model, place, options, damage, message } = wrong;
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, model, place);
  damage?.(directory);
  const failure = await openModel(modelOptions(directory, options)).then(
    () => new Error('the model was opened'),
    (error: Error) => error,
  );
  expect(failure.message).toMatch(message);
  expect(failure.message).not.toContain('\n');
  expect(failure.name).toBe('ModelError');
});

it('a valid directory gives its shape and a log line', async () => {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory);
  rmSync(join(directory, 'generation_config.json'));
  const { runner, shape, summary } = await openModel(modelOptions(directory, { contextLength: 100 }));
  runner.dispose();
  expect(shape).toEqual({
    vocabularySize: 256,
    contextLength: 100,
    slots: 4,
    prefillChunk: 32,
    maxPrefillChunks: 2,
    minRows: 1,
    rowMultiple: 1,
  });
  expect(summary).toBe(
    'model.onnx: 2 layers, 2 KV heads of 16 in float32, vocabulary 256; ' +
      'KV cache 4 slots × 100 positions × 512 bytes = 1 MiB',
  );
});

it.each(['concatenated', 'merged'] as const)(
  'a window in the mask of the graph does not limit the context: %s',
  (attention) => {
    const directory = temporaryDirectory();
    writeSyntheticModel(directory, { attention, slidingWindow: 100 });
    const { layout } = planModel({ directory, slots: 1, kvLimitBytes: null });
    expect(layout.contextLength).toBe(512);
  },
);

it('serves a context shorter than the window of a graph with sliding_window_cache', async () => {
  const model = { slidingWindow: 12, windowedCache: true } as const;
  const { runner } = await syntheticRunner(model, { contextLength: 10 });
  expect(runner.shape.contextLength).toBe(10);
});

it('memory for external weights is not available to the KV cache', async () => {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, { externalData: true });
  const weights = statSync(join(directory, 'model.onnx.data')).size;
  const options = modelOptions(directory, { slots: 64, kvLimitBytes: null });
  const free = vi.spyOn(process, 'availableMemory');
  free.mockReturnValue(2 ** 24 + weights - 1);
  await expect(openModel(options)).rejects.toThrow(
    /^KV cache does not fit: 64 slots .* = 16 MiB, but 15 MiB are available beside \d+ MiB of weights; set/,
  );
  free.mockReturnValue(2 ** 24 + weights);
  const { runner } = await openModel(options);
  runner.dispose();
  free.mockRestore();
});

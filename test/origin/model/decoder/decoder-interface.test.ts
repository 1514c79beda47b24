import { join } from 'node:path';
import { expect, it } from 'vitest';
import { buildModel } from '../../../../origin/export/build.ts';
import { readModelConfig } from '../../../../origin/model/config/model-config.ts';
import { textsOf } from '../../../../origin/model/config/model-directory.ts';
import { describeDecoder } from '../../../../origin/model/decoder/decoder-interface.ts';
import { ElementType, type GraphTensor } from '../../../../origin/model/onnx/onnx-graph.ts';
import { readGraphFile } from '../../../../origin/model/ort/graph-file.ts';
import { writeSyntheticModel } from '../../../support/synthetic/synthetic-model.ts';
import { CASES } from '../../export/family-cases.ts';
import { hashedCheckpoint } from '../../export/hashed-checkpoint.ts';
import { temporaryDirectory } from '../synthetic-runner.ts';

it.each([
  { name: 'past.0.conv', feature: 'belongs to a hybrid model: past.0.conv hold the state of layers' },
  { name: 'past.12.recurrent', feature: 'belongs to a hybrid model: past.12.recurrent hold the state' },
  { name: 'past_ssm.3', feature: 'belongs to a hybrid model: past_ssm.3 hold the state' },
  { name: 'cache_params.conv_states', feature: 'belongs to a hybrid model: cache_params.conv_states hold' },
  { name: 'past_key_values.0.key_scale', feature: 'has a quantized KV cache (past_key_values.0.key_scale)' },
  { name: 'past.conversion', feature: 'has unsupported inputs: past.conversion' },
])('names the feature of a decoder with the input $name', ({ name, feature }) => {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory);
  const { graph } = readGraphFile(directory, 'model.onnx');
  const inputs = [...graph.inputs, { name, elementType: ElementType.float32, dimensions: ['batch', 4] }];
  expect(() => describeDecoder({ ...graph, inputs }, readModelConfig(textsOf(directory)))).toThrow(feature);
});

it('refuses keys and values of different head sizes by the name of that feature', () => {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory);
  const { graph } = readGraphFile(directory, 'model.onnx');
  const inputs = graph.inputs.map((tensor) => {
    const [batch, heads, positions] = tensor.dimensions;
    return tensor.name.endsWith('.value')
      ? { ...tensor, dimensions: [batch!, heads!, positions!, 8] }
      : tensor;
  });
  expect(() => describeDecoder({ ...graph, inputs }, readModelConfig(textsOf(directory)))).toThrow(
    'has KV inputs of different shapes or types: past_key_values.0.key, past_key_values.0.value; head sizes 16 and 8 in ' +
      'one model, as in multi-head latent attention (DeepSeek) or Gemma 4, are not supported',
  );
});

/** Builds a model with gated delta networks; returns its graph and configuration. */
async function withStates() {
  const directory = join(temporaryDirectory(), 'model');
  const { config, tensors } = CASES.find(({ name }) => name === 'qwen3_5_text')!;
  await buildModel(hashedCheckpoint(config, tensors), { precision: 'fp32', directory });
  return { ...readGraphFile(directory, 'model.onnx'), config: readModelConfig(textsOf(directory)) };
}

it('finds the window and the recurrent state of each layer without attention', async () => {
  const { graph, config } = await withStates();
  const { layers, kv, states } = describeDecoder(graph, config);
  expect(states.map(({ past, dimensions }) => `${past} ${dimensions.join()}`).toSorted()).toEqual(
    [0, 1, 2].flatMap((layer) => [
      `past_states.${layer}.convolution 512,3`,
      `past_states.${layer}.recurrence 8,32,32`,
    ]),
  );
  expect([layers, kv.length]).toEqual([4, 2]);
});

it('refuses a state of another shape or type by name', async () => {
  const { graph, config } = await withStates();
  const changes: Partial<GraphTensor>[] = [
    { dimensions: ['batch', 8, 32] },
    { dimensions: ['batch', 8, 'size', 32] },
    { elementType: ElementType.float16 },
  ];
  for (const change of changes) {
    const inputs = graph.inputs.map((one) =>
      one.name === 'past_states.1.recurrence' ? { ...one, ...change } : one,
    );
    expect(() => describeDecoder({ ...graph, inputs }, config)).toThrow(
      'has an input past_states.1.recurrence that is not float32 [batch, heads, key size, value size]',
    );
  }
});

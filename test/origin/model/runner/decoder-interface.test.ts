import { expect, it } from 'vitest';
import { readModelConfig } from '../../../../origin/model/config/model-config.ts';
import { ElementType } from '../../../../origin/model/onnx/onnx-graph.ts';
import { readGraphFile } from '../../../../origin/model/ort/graph-file.ts';
import { describeDecoder } from '../../../../origin/model/runner/decoder-interface.ts';
import { writeSyntheticModel } from '../../../support/synthetic/synthetic-model.ts';
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
  expect(() => describeDecoder({ ...graph, inputs }, readModelConfig(directory))).toThrow(feature);
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
  expect(() => describeDecoder({ ...graph, inputs }, readModelConfig(directory))).toThrow(
    'has KV inputs of different shapes or types: past_key_values.0.key, past_key_values.0.value; head sizes 16 and 8 in ' +
      'one model, as in multi-head latent attention (DeepSeek) or Gemma 4, are not supported',
  );
});

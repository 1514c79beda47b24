import { expect, it } from 'vitest';
import { readModelConfig } from '../../../../origin/model/config/model-config.ts';
import { readGraphFile } from '../../../../origin/model/ort/graph-file.ts';
import { describeDecoder } from '../../../../origin/model/runner/decoder-interface.ts';
import { writeSyntheticModel } from '../../../support/synthetic/synthetic-model.ts';
import { temporaryDirectory } from '../synthetic-runner.ts';

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

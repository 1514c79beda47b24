import { expect, it } from 'vitest';
import { readModelConfig } from '../../../../origin/model/config/model-config.ts';
import { textsOf } from '../../../../origin/model/config/model-directory.ts';
import { describeDecoder } from '../../../../origin/model/decoder/decoder-interface.ts';
import { runBytes, runSizes } from '../../../../origin/model/open/run-memory.ts';
import { readGraphFile } from '../../../../origin/model/ort/graph-file.ts';
import { type SyntheticModel, writeSyntheticModel } from '../../../support/synthetic/synthetic-model.ts';
import { temporaryDirectory } from '../synthetic-runner.ts';

function read(options: Partial<SyntheticModel>) {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, options);
  const { graph } = readGraphFile(directory, 'model.onnx');
  return { graph, decoder: describeDecoder(graph, readModelConfig(textsOf(directory))) };
}

const MODEL = { heads: 8, kvHeads: 2, headSize: 16, vocabulary: 4096 };

it('the sizes of runs are read from the graph: widest product, query heads, largest quantized matrix', () => {
  const plain = read(MODEL);
  expect(runSizes(plain.graph, plain.decoder)).toEqual({ widest: 128, heads: 8, quantized: 0 });
  const quantized = read({ ...MODEL, quantization: 'q4' });
  expect(runSizes(quantized.graph, quantized.decoder)).toEqual({
    widest: 128,
    heads: 8,
    quantized: 4096 * 64,
  });
});

it('a run needs logits, activations, attention, one dequantized matrix and scores, by the larger of batch and two chunks', () => {
  const { graph, decoder } = read({ ...MODEL, quantization: 'q4' });
  const split = 128 * 132 * 17 * 4;
  const perRow = 6 * 128 * 4 + 2 * 12 * 16 * 4;
  const whole = 4096 * 64 * 2;
  const kept = 4096 * 4;
  const scored = 256 * 4096 * 16;
  const rest = split + whole + scored;
  expect(runBytes(decoder, 8, 512, graph)).toBe(1024 * perRow + 256 * 4096 * 6 + (8 + 32) * kept + rest);
  expect(runBytes(decoder, 2000, 512, graph)).toBe(
    2000 * perRow + 2000 * 4096 * 6 + (2000 + 32) * kept + rest,
  );
});

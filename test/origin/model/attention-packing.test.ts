import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readModelConfig } from '../../../origin/model/config/model-config.ts';
import { packAttention } from '../../../origin/model/onnx/attention-packing.ts';
import { type OnnxGraph, readGraph } from '../../../origin/model/onnx/onnx-graph.ts';
import { graphFields, withGraph } from '../../../origin/model/onnx/onnx-patch.ts';
import { patchDecoder } from '../../../origin/model/open/patch-decoder.ts';
import { openOrtApi } from '../../../origin/model/ort/ort-capi.ts';
import { OrtSession } from '../../../origin/model/ort/ort-session.ts';
import { describeDecoder } from '../../../origin/model/runner/decoder-interface.ts';
import { kvLayout } from '../../../origin/model/runner/kv-cache.ts';
import { OrtRunner } from '../../../origin/model/runner/ort-runner.ts';
import { type SyntheticModel, writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';
import { decodeRows, prefillPrompt, randomTokens, temporaryDirectory } from './synthetic-runner.ts';

function writtenModel(options: Partial<SyntheticModel>): { directory: string; file: Uint8Array } {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, options);
  return { directory, file: readFileSync(join(directory, 'model.onnx')) };
}

function runnerOf(directory: string, file: Uint8Array): OrtRunner {
  const decoder = describeDecoder(readGraph(file), readModelConfig(directory));
  const { model, logits } = patchDecoder({ model: file, graph: readGraph(file) }, decoder, 'cuda');
  const session = new OrtSession(openOrtApi(), model, { threads: 2, directory });
  const runner = new OrtRunner(session, {
    decoder,
    logits,
    layout: kvLayout(decoder, 4, 64),
    prefillChunk: 8,
  });
  onTestFinished(() => runner.dispose());
  return runner;
}

const count = ({ nodes }: OnnxGraph, operator: string) =>
  nodes.filter((node) => node.operator === operator).length;

describe.each([
  { quantization: 'q8' },
  { quantization: 'q4' },
  { quantization: 'q4', positionIds: true, slidingWindow: 12 },
  { quantization: 'q8', accuracyLevel: 0, kvHeads: 4 },
  { quantization: 'q4', precision: 'float16', logits: 'float16' },
] as const)('of $quantization $precision: %o', (options) => {
  it('replaces three projections by one in every layer without changing a bit', async () => {
    const { directory, file } = writtenModel(options);
    const packed = withGraph(file, packAttention(graphFields(file)));
    const [before, after] = [readGraph(file), readGraph(packed)];
    expect(count(before, 'MatMulNBits') - count(after, 'MatMulNBits')).toBe(2 * 2);
    expect(after.initializers.size).toBe(before.initializers.size - 2 * 2 * 2);
    expect([after.inputs, after.outputs]).toEqual([before.inputs, before.outputs]);

    const runners = [runnerOf(directory, file), runnerOf(directory, packed)];
    const answers = runners.map(async (runner) => {
      const logits: Float32Array[] = [];
      for (let slot = 0; slot < 4; slot++) {
        logits.push(await prefillPrompt(runner, slot, randomTokens(11 + slot, slot)));
      }
      for (const rows of [1, 2, 3, 4]) {
        const inputs = Array.from({ length: rows }, (_, row) => ({
          token: 7 * row + rows,
          position: 11 + row,
        }));
        logits.push(...(await decodeRows(runner, 0, inputs)));
      }
      return logits;
    });
    const [expected, actual] = await Promise.all(answers);
    expect(actual).toEqual(expected);
  });
});

it.each<[string, Partial<SyntheticModel>]>([
  ['weights in floating point', {}],
  ['weights beside the model file', { quantization: 'q8', externalData: true }],
  ['attention of plain operators', { quantization: 'q8', attention: 'concatenated' }],
  ['branches', { quantization: 'q8', attention: 'merged' }],
])('%s stay as they are, to the byte', (_, options) => {
  const { file } = writtenModel({ hidden: 128, ...options });
  const fields = graphFields(file);
  expect(packAttention(fields)).toBe(fields);
  expect(withGraph(file, fields)).toEqual(file);
});

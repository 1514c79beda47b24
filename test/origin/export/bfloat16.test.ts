import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildModel } from '../../../origin/export/build.ts';
import { ElementType, type OnnxGraph, readGraph } from '../../../origin/model/onnx/onnx-graph.ts';
import { openOrtApi } from '../../../origin/model/ort/ort-capi.ts';
import { OrtSession } from '../../../origin/model/ort/ort-session.ts';
import { readTensors } from '../../support/float64-tensors.ts';
import { temporaryDirectory } from '../model/synthetic-runner.ts';
import { built } from './built-model.ts';
import { CASES } from './family-cases.ts';
import { hashedCheckpoint } from './hashed-checkpoint.ts';
import { safetensorsBytes, writeLlama } from './written-checkpoint.ts';

/** Graphs whose weights, activations and KV are in bfloat16. Only CUDA has kernels for them. */

const NARROW = { headSize: 16, heads: 4, kvHeads: 2, layers: 1 };
const graphOf = (directory: string) => readGraph(readFileSync(join(directory, 'model.onnx')));

describe('a Llama in bf16', () => {
  it('has the bits of a checkpoint in bfloat16', async () => {
    const { directory, tensors } = writeLlama(temporaryDirectory(), NARROW, 'BF16');
    const { directory: model } = await built(directory, { precision: 'bf16' });
    const stored = readTensors(join(model, 'model.onnx'));
    for (const [name, { values }] of Object.entries(tensors)) {
      // Words that are rounded already, so that nothing is left to round.
      const words = new Uint32Array(Float32Array.from(values).buffer);
      const halves = Uint16Array.from(words, (word) => (word + 0x7fff + ((word >>> 16) & 1)) >>> 16);
      const [key, tensor] = [...stored].find(([key]) => key.split('|').includes(name))!;
      expect(tensor.type, name).toBe(ElementType.bfloat16);
      expect(Buffer.from(tensor.bytes).includes(Buffer.from(halves.buffer)), `${name} in ${key}`).toBe(true);
    }
  });

  it('is the graph of fp16 with other types, and has logits in float32', async () => {
    const { directory } = writeLlama(temporaryDirectory(), NARROW, 'BF16');
    const graphIn = async (precision: 'fp16' | 'bf16') =>
      graphOf((await built(directory, { precision })).directory);
    const half = await graphIn('fp16');
    const brain = await graphIn('bf16');
    const typesOf = ({ inputs, outputs }: OnnxGraph) =>
      [...inputs, ...outputs].map(({ name, elementType }) => [name, elementType]);
    const renamed = typesOf(half).map(([name, type]) => [
      name,
      type === ElementType.float16 ? ElementType.bfloat16 : type,
    ]);
    expect(typesOf(brain)).toEqual(renamed);
    expect(brain.outputs.find(({ name }) => name === 'logits')!.elementType).toBe(ElementType.float32);
    const shapeOf = ({ nodes }: OnnxGraph) => nodes.map(({ operator, outputs }) => [operator, outputs]);
    expect(shapeOf(brain)).toEqual(shapeOf(half));
  });

  it('has values that are beyond float16, but none beyond bfloat16', async () => {
    const { directory, tensors } = writeLlama(temporaryDirectory(), NARROW);
    const name = 'model.layers.0.mlp.up_proj.weight';
    const withValue = (value: number) => {
      const values = Float64Array.from(tensors[name]!.values);
      values[7] = value;
      const bytes = safetensorsBytes({ ...tensors, [name]: { ...tensors[name]!, values } });
      writeFileSync(join(directory, 'model.safetensors'), bytes);
      return built(directory, { precision: 'bf16' });
    };
    await expect(withValue(-3.4e38)).rejects.toThrow(
      /^tensor model.layers.0.mlp.up_proj.weight has the value -3.39\d*e\+38, beyond bfloat16; build another precision$/,
    );
    await withValue(-70_000);
  });
});

/** Says why this build cannot run on the CPU. */
async function faultOnCpu(name: string): Promise<string> {
  const { config, tensors } = CASES.find((one) => one.name === name)!;
  const directory = join(temporaryDirectory(), 'model');
  try {
    await buildModel(hashedCheckpoint(config, tensors), { precision: 'bf16', directory });
    const model = readFileSync(join(directory, 'model.onnx'));
    new OrtSession(openOrtApi(), model, { threads: 1, directory, device: { provider: 'cpu' } }).dispose();
    return 'none';
  } catch (error) {
    return (error as Error).message;
  }
}

it.each(['llama', 'gemma2', 'gemma3', 'qwen3', 'gpt2', 'phi3', 'olmo2', 'granitemoehybrid', 'falcon_h1'])(
  '%s in bf16 has types that its operators accept: a CPU lacks only kernels',
  async (name) => {
    expect(await faultOnCpu(name)).toMatch(/^Could not find an implementation for /);
  },
);

it.each([
  ['mixtral', 'experts'],
  ['olmo', 'limited queries and keys'],
  ['apertus', 'the activation xIELU'],
])('%s has operators without bfloat16, and is refused', async (name, part) => {
  expect(await faultOnCpu(name)).toBe(`bf16 is not for models with ${part}; build fp16`);
});

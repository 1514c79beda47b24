import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { buildModel } from '../../../origin/export/build.ts';
import { readGraph } from '../../../origin/model/onnx/onnx-graph.ts';
import { temporaryDirectory } from '../model/synthetic-runner.ts';
import { CASES } from './family-cases.ts';
import { hashedCheckpoint } from './hashed-checkpoint.ts';

it('int4 has 8 bits in attention and in the output of delta networks, whose decays and rates stay floats', async () => {
  const { config, tensors } = CASES.find(({ name }) => name === 'qwen3_5_text')!;
  const directory = path.join(temporaryDirectory(), 'model');
  await buildModel(hashedCheckpoint(config, tensors), { precision: 'int4', directory });
  const { nodes } = readGraph(readFileSync(path.join(directory, 'model.onnx')));
  const products = nodes.filter(({ operator }) => operator === 'MatMulNBits');
  const kindsIn = (bits: number) => {
    const names = products
      .filter(({ integers }) => integers.get('bits') === bits)
      .map(({ inputs }) => inputs[1]!);
    return new Set(names.flatMap((name) => /(linear_attn\.\w+|self_attn|mlp)/.exec(name)?.[1] ?? []));
  };
  expect(kindsIn(8)).toEqual(new Set(['self_attn', 'linear_attn.out_proj']));
  expect(kindsIn(4)).toEqual(new Set(['mlp', 'linear_attn.in_proj_qkv', 'linear_attn.in_proj_z']));
});

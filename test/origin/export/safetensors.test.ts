import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openSafetensors } from '../../../origin/export/checkpoint/safetensors.ts';
import { runs, TEST_SEED } from '../../support/random.ts';
import { writeJson } from '../../support/synthetic/synthetic-model.ts';
import { fuzzHeaders } from '../../tools/fuzz/safetensors.ts';
import { temporaryDirectory } from '../model/synthetic-runner.ts';
import { built } from './built-model.ts';
import {
  safetensorsBytes,
  type WrittenTensors,
  type WrittenType,
  withHeader,
  writeLlama,
} from './written-checkpoint.ts';

const INDEX = 'model.safetensors.index.json';
const NORM = 'model.norm.weight';

async function opened(files: Readonly<Record<string, Uint8Array | object>>) {
  const directory = temporaryDirectory();
  writeJson(join(directory, 'config.json'), {});
  for (const [name, content] of Object.entries(files)) {
    if (content instanceof Uint8Array) writeFileSync(join(directory, name), content);
    else writeJson(join(directory, name), content);
  }
  return openSafetensors(directory);
}

const TENSORS: WrittenTensors = {
  a: { shape: [2, 3], values: [1, -2.5, 0.15625, 65504, -6e-8, 0] },
  b: { shape: [2], values: [3, 4] },
};

describe('safetensors', () => {
  it.each<[WrittenType, readonly number[]]>([
    ['F32', [1, -2.5, 0.15625, 65504, Math.fround(-6e-8), 0]],
    ['F16', [1, -2.5, 0.15625, 65504, -(2 ** -24), 0]],
    ['BF16', [1, -2.5, 0.15625, 65536, -6.007030606269836e-8, 0]],
    ['F64', [1, -2.5, 0.15625, 65504, Math.fround(-6e-8), 0]],
  ])('reads rows of %s', async (type, expected) => {
    const checkpoint = await opened({ 'model.safetensors': safetensorsBytes(TENSORS, type) });
    expect([...(await checkpoint.readRows('a', 0, 2))]).toEqual(expected);
    expect([...(await checkpoint.readRows('a', 1, 1))]).toEqual(expected.slice(3));
    expect([...(await checkpoint.readRows('b', 0, 1))]).toEqual([3, 4]);
    await checkpoint.close();
  });

  // 0x38 is 1, 0x40 is 2, 0xb8 is −1, 0x01 is 2⁻⁹, 0x7e is 448.
  const CODES = Uint8Array.of(0x38, 0x40, 0xb8, 0x01, 0x7e, 0x38, 0x38, 0x00, 0x40);
  const withScales = (name: string, shape: readonly number[], scales: readonly number[]) => {
    const header = {
      w: { dtype: 'F8_E4M3', shape: [3, 3], data_offsets: [0, 9] },
      [name]: { dtype: 'F32', shape, data_offsets: [9, 9 + 4 * scales.length] },
    };
    const bytes = new Uint8Array(Float32Array.from(scales).buffer);
    return withHeader(header, Buffer.concat([CODES, bytes]));
  };
  const IN_BLOCKS = { quant_method: 'fp8', weight_block_size: [2, 2] };
  const AS_A_WHOLE = { quant_method: 'fp8', weight_block_size: null };
  const COMPRESSED = { quant_method: 'compressed-tensors', format: 'float-quantized' };
  it.each([
    {
      scales: 'its blocks',
      quantization: IN_BLOCKS,
      file: withScales('w_scale_inv', [2, 2], [10, 100, 1000, 0.5]),
      expected: [10, 20, -100, 10 / 512, 4480, 100, 1000, 0, 1],
    },
    {
      scales: 'its rows',
      quantization: COMPRESSED,
      file: withScales('w_scale', [3, 1], [10, 100, 0.5]),
      expected: [10, 20, -10, 100 / 512, 44_800, 100, 0.5, 0, 1],
    },
    {
      scales: 'its rows, in one dimension',
      quantization: COMPRESSED,
      file: withScales('w_scale', [3], [10, 100, 0.5]),
      expected: [10, 20, -10, 100 / 512, 44_800, 100, 0.5, 0, 1],
    },
    {
      scales: 'the whole',
      quantization: AS_A_WHOLE,
      file: withScales('w_scale_inv', [], [4]),
      expected: [4, 8, -4, 4 / 512, 1792, 4, 4, 0, 8],
    },
  ])('multiplies float8 by the scales of $scales', async ({ quantization, file, expected }) => {
    const directory = temporaryDirectory();
    writeJson(join(directory, 'config.json'), { quantization_config: quantization });
    writeFileSync(join(directory, 'model.safetensors'), file);
    const checkpoint = await openSafetensors(directory);
    expect([...checkpoint.tensors.keys()]).toEqual(['w']);
    expect([...(await checkpoint.readRows('w', 0, 3))]).toEqual(expected.map(Math.fround));
    expect([...(await checkpoint.readRows('w', 2, 1))]).toEqual(expected.slice(6).map(Math.fround));
    await checkpoint.close();
  });

  it('reads shards by their index', async () => {
    const checkpoint = await opened({
      'one.safetensors': safetensorsBytes({ a: TENSORS.a! }),
      'two.safetensors': safetensorsBytes({ b: TENSORS.b! }),
      [INDEX]: { weight_map: { a: 'one.safetensors', b: 'two.safetensors' } },
    });
    expect([...(await checkpoint.readRows('b', 0, 1))]).toEqual([3, 4]);
    await checkpoint.close();
  });

  const good = safetensorsBytes(TENSORS);
  const entry = (changes: object) => ({
    a: { dtype: 'F32', shape: [2], data_offsets: [0, 8] },
    b: { dtype: 'F32', shape: [2], data_offsets: [8, 16], ...changes },
  });
  const lying = (changes: object) => ({
    'model.safetensors': withHeader(entry(changes), new Uint8Array(16)),
  });
  it.each([
    { fault: 'no weights', files: {}, message: 'has no model.safetensors' },
    {
      fault: 'a pickle',
      files: { 'pytorch_model.bin': new Uint8Array(4) },
      message: 'pickle, which can run any code',
    },
    {
      fault: 'a missing shard',
      files: { [INDEX]: { weight_map: { a: 'x.safetensors' } } },
      message: 'x.safetensors',
    },
    {
      fault: 'a shard outside of the directory',
      files: { [INDEX]: { weight_map: { a: '../x.safetensors' } } },
      message: '../x.safetensors',
    },
    {
      fault: 'an index that lies',
      files: { 'm.safetensors': good, [INDEX]: { weight_map: { c: 'm.safetensors' } } },
      message: 'm.safetensors has the tensor c, but it has not',
    },
    {
      fault: 'a cut file',
      files: { 'model.safetensors': good.slice(0, -1) },
      message: 'tensor b ends at byte',
    },
    {
      fault: 'a cut header',
      files: { 'model.safetensors': good.slice(0, 40) },
      message: 'truncated or damaged',
    },
    { fault: 'few bytes', files: { 'model.safetensors': good.slice(0, 5) }, message: 'it has 5 bytes' },
    {
      fault: 'a header that is no JSON',
      files: { 'model.safetensors': withHeader('{', new Uint8Array()) },
      message: 'not a JSON object',
    },
    { fault: 'tensors that overlap', files: lying({ data_offsets: [4, 12] }), message: 'tensor b overlaps' },
    {
      fault: 'a shape that lies',
      files: lying({ shape: [3] }),
      message: 'tensor b says that it has 8 bytes, but F32 [3] needs 12',
    },
    {
      fault: 'a shape beyond all memory',
      files: lying({ shape: [2 ** 50, 2 ** 50] }),
      message: 'tensor b says',
    },
    {
      fault: 'an unknown type',
      files: lying({ dtype: 'toString' }),
      message: 'tensor b has the unknown type toString',
    },
    { fault: 'a negative size', files: lying({ shape: [-2] }), message: 'tensor b: shape.0' },
    {
      fault: 'a gap',
      files: lying({ data_offsets: [12, 20] }),
      message: '4 bytes before tensor b belong to none',
    },
  ])('refuses $fault', async ({ files, message }) => {
    await expect(opened(files)).rejects.toThrow(message);
  });

  it('refuses models quantized in other ways by their name', async () => {
    const directory = temporaryDirectory();
    writeJson(join(directory, 'config.json'), { quantization_config: { quant_method: 'gptq' } });
    await expect(openSafetensors(directory)).rejects.toThrow('quant_method is "gptq"');
  });

  it('keeps damaged headers within the file', async () => {
    const cases = runs(2_000);
    const { violations, accepted, refused } = await fuzzHeaders(cases, TEST_SEED);
    expect(violations).toEqual([]);
    expect(Math.min(accepted, refused)).toBeGreaterThan(cases / 10);
  });
});

describe('a build refuses', () => {
  const write = (change: (tensors: Record<string, WrittenTensors[string]>) => void): string => {
    const { directory, tensors } = writeLlama(temporaryDirectory());
    const changed = { ...tensors };
    change(changed);
    rmSync(join(directory, 'model.safetensors'));
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, 'model.safetensors'), safetensorsBytes(changed));
    return directory;
  };

  it('a missing tensor', async () => {
    const directory = write((tensors) => delete tensors[NORM]);
    await expect(built(directory)).rejects.toThrow(`lacks the tensor ${NORM}`);
  });

  it('a tensor of another shape than config.json says', async () => {
    const directory = write((tensors) => (tensors[NORM] = { shape: [32], values: new Float64Array(32) }));
    await expect(built(directory)).rejects.toThrow(`${NORM} is [32]`);
  });

  it.each(['fp32', 'int8', 'int4'] as const)('a value that is not finite in %s', async (precision) => {
    const name = 'model.layers.0.mlp.up_proj.weight';
    const directory = write((tensors) => {
      const values = Float64Array.from(tensors[name]!.values);
      values[700] = Number.NaN;
      tensors[name] = { ...tensors[name]!, values };
    });
    await expect(built(directory, { precision })).rejects.toThrow(`tensor ${name} has the value NaN`);
  });

  it('a value beyond the range of fp16', async () => {
    const name = 'model.layers.0.mlp.up_proj.weight';
    const directory = write((tensors) => {
      const values = Float64Array.from(tensors[name]!.values);
      values[700] = -70_000;
      tensors[name] = { ...tensors[name]!, values };
    });
    await expect(built(directory, { precision: 'fp16' })).rejects.toThrow(
      `tensor ${name} has the value -70000, beyond float16; build bf16 for CUDA, or another precision`,
    );
    await built(directory, { precision: 'fp32' });
  });

  it('names tensors that it does not use, and counts those of a part', async () => {
    const unused = ['model.visual.patch', 'model.visual.blocks.0.norm', 'model.layers.0.gate', 'mtp.fc'];
    const directory = write((tensors) => {
      for (const name of unused) tensors[name] = { shape: [1], values: [0] };
    });
    const named = ['model.layers.0.gate', 'model.visual (2 tensors)', 'mtp.fc'];
    expect((await built(directory)).unusedTensors.toSorted()).toEqual(named);
  });
});

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { buildModel } from '../../../../origin/export/build.ts';
import { openGguf } from '../../../../origin/export/gguf/gguf-checkpoint.ts';
import { textsOf } from '../../../../origin/model/config/model-directory.ts';
import { readProvenance } from '../../../../origin/model/config/provenance.ts';
import { randomFrom } from '../../../support/random.ts';
import { temporaryDirectory } from '../../model/synthetic-runner.ts';
import { type Tensor, type Value, writeGguf } from './gguf-writer.ts';

const KEYS: Readonly<Record<string, Value>> = {
  'general.architecture': { text: 'qwen2' },
  'qwen2.block_count': { u32: 1 },
  'qwen2.context_length': { u32: 16 },
  'qwen2.embedding_length': { u32: 256 },
  'qwen2.feed_forward_length': { u32: 16 },
  'qwen2.attention.head_count': { u32: 2 },
  'qwen2.attention.layer_norm_rms_epsilon': { f32: 1e-6 },
  'tokenizer.ggml.model': { text: 'gpt2' },
  'tokenizer.ggml.pre': { text: 'qwen2' },
  'tokenizer.ggml.tokens': { texts: ['a', 'b'] },
  'tokenizer.ggml.merges': { texts: [] },
};

/** Blocks of random bytes; scales in float16 are finite and positive. */
function randomBlocks(type: number, blocks: number, bytes: number, scaleAt: number | null): Tensor {
  const random = randomFrom(type);
  const data = Buffer.from(Array.from({ length: blocks * bytes }, () => Math.floor(random() * 256)));
  for (let block = 0; block < blocks; block += 1) {
    if (scaleAt !== null) data.writeUInt16LE(0x2c00 + Math.floor(random() * 0x3ff), block * bytes + scaleAt);
    else data[block * bytes] = 120 + Math.floor(random() * 8);
  }
  return { name: 'token_embd.weight', type, dimensions: [256, 2], data };
}

const write = (directory: string, name: string, bytes: Buffer): string => {
  const path = join(directory, name);
  writeFileSync(path, bytes);
  return path;
};

async function opened(path: string) {
  const checkpoint = openGguf(path);
  onTestFinished(() => checkpoint.close());
  return checkpoint;
}

describe.each([
  ['Q8_0', randomBlocks(8, 16, 34, 0), { bits: 8, blockSize: 32 }],
  ['Q4_0', randomBlocks(2, 16, 18, 0), { bits: 4, blockSize: 32 }],
  ['Q5_0', randomBlocks(6, 16, 22, 0), { bits: 8, blockSize: 32 }],
  ['Q6_K', randomBlocks(14, 2, 210, 208), { bits: 8, blockSize: 16 }],
  ['IQ4_NL', randomBlocks(20, 16, 18, 0), { bits: 8, blockSize: 32 }],
  ['MXFP4', randomBlocks(39, 16, 17, null), { bits: 8, blockSize: 32 }],
] as const)('%s', (type, tensor, { bits, blockSize }) => {
  test('is handed over in blocks without loss', async () => {
    const checkpoint = await opened(write(temporaryDirectory(), 'model.gguf', writeGguf(KEYS, [tensor])));
    const name = 'model.embed_tokens.weight';
    expect(checkpoint.tensors.get(name)).toMatchObject({
      storedAs: type,
      blocks: { bits, blockSize },
    });
    const values = await checkpoint.readRows(name, 1, 1);
    const { levels, scales } = await checkpoint.readBlocks(name, 1, 1);
    const level = (index: number) =>
      bits === 8 ? levels[index]! : (levels[index >> 1]! >> (4 * (index & 1))) & 15;
    const rebuilt = values.map(
      (_, index) => (level(index) - 2 ** (bits - 1)) * scales[Math.floor(index / blockSize)]!,
    );
    expect(rebuilt.map((value) => value + 0)).toEqual(values.map((value) => value + 0));
    expect(new Set(values).size).toBeGreaterThan(10);
  });
});

/** Q8_0 by its definition: per 32 values, a scale in float16 and 32 signed bytes. */
function decodedQ8(data: Uint8Array): number[] {
  return Array.from({ length: data.length / 34 }, (_, block) => {
    const half = data[34 * block]! + 256 * data[34 * block + 1]!;
    const scale = (1 + (half % 1024) / 1024) * 2 ** (Math.floor(half / 1024) - 15);
    const levels = Int8Array.from(data.subarray(34 * block + 2, 34 * (block + 1)));
    return Array.from(levels, (level) => scale * level);
  }).flat();
}

test('Q8_0 is read as its definition says, also where the converter has moved rows', async () => {
  const [columns, heads, headSize] = [64, 2, 32];
  const matrix = (name: string, rows: number, seed: number): Tensor => {
    const { data } = randomBlocks(seed, (columns * rows) / 32, 34, 0);
    return { name, type: 8, dimensions: [columns, rows], data };
  };
  const [embedding, query] = [
    matrix('token_embd.weight', 256, 1),
    matrix('blk.0.attn_q.weight', heads * headSize, 2),
  ];
  const keys = {
    'general.architecture': { text: 'llama' },
    'llama.block_count': { u32: 1 },
    'llama.context_length': { u32: 16 },
    'llama.embedding_length': { u32: columns },
    'llama.feed_forward_length': { u32: 16 },
    'llama.attention.head_count': { u32: heads },
    'llama.attention.layer_norm_rms_epsilon': { f32: 1e-6 },
    ...Object.fromEntries(Object.entries(KEYS).filter(([key]) => key.startsWith('tokenizer.'))),
  };
  const file = writeGguf(keys, [embedding, query]);
  const checkpoint = await opened(write(temporaryDirectory(), 'model.gguf', file));
  const stored = decodedQ8(query.data);
  // The file has the two values of a rotated pair side by side, Hugging Face's checkpoint in two halves.
  const rows = Array.from({ length: heads * headSize }, (_, row) => {
    const [head, index] = [Math.floor(row / headSize), row % headSize];
    const from = head * headSize + 2 * (index % (headSize / 2)) + Math.floor(index / (headSize / 2));
    return stored.slice(from * columns, (from + 1) * columns);
  });
  const name = 'model.layers.0.self_attn.q_proj.weight';
  expect([...(await checkpoint.readRows(name, 0, rows.length))]).toEqual(rows.flat());
  const { levels, scales } = await checkpoint.readBlocks(name, 0, rows.length);
  const rebuilt = Array.from(levels, (level, index) => (level - 128) * scales[Math.floor(index / 32)]!);
  expect(rebuilt.map((value) => value + 0)).toEqual(rows.flat().map((value) => value + 0));
  const embedded = [...(await checkpoint.readRows('model.embed_tokens.weight', 0, 256))];
  expect(embedded).toEqual(decodedQ8(embedding.data));
});

test('types with minima are not handed over in blocks', async () => {
  const tensor = randomBlocks(3, 16, 20, 0);
  for (let at = 2; at < tensor.data.length; at += 20) tensor.data.set([0, 0x30], at);
  const checkpoint = await opened(write(temporaryDirectory(), 'model.gguf', writeGguf(KEYS, [tensor])));
  expect(checkpoint.tensors.get('model.embed_tokens.weight')).toMatchObject({
    storedAs: 'Q4_1',
    blocks: null,
  });
});

describe('the precision of a built file', () => {
  const vector = (name: string, size: number): Tensor => ({
    name,
    type: 0,
    dimensions: [size],
    data: Buffer.alloc(4 * size),
  });
  /** One layer of Qwen 2 with heads of 32, its matrices in blocks of these types. */
  const layer = (types: { readonly attention: number; readonly feedForward: number }): Tensor[] => {
    const matrix = (name: string, type: number, columns: number, rows: number): Tensor => ({
      ...randomBlocks(type, (columns * rows) / 32, type === 2 ? 18 : 34, 0),
      name: `blk.0.${name}.weight`,
      dimensions: [columns, rows],
    });
    return [
      ...['attn_q', 'attn_k', 'attn_v', 'attn_output'].map((name) => matrix(name, types.attention, 64, 64)),
      ...['ffn_gate', 'ffn_up', 'ffn_down'].map((name) => matrix(name, types.feedForward, 64, 64)),
      ...['attn_norm.weight', 'ffn_norm.weight', 'attn_q.bias', 'attn_k.bias', 'attn_v.bias'].map((name) =>
        vector(`blk.0.${name}`, 64),
      ),
      vector('output_norm.weight', 64),
      { ...randomBlocks(8, 1024, 34, 0), name: 'token_embd.weight', dimensions: [64, 512] },
    ];
  };
  const [q4, q8] = [2, 8];

  test.each([
    { types: { attention: q4, feedForward: q4 }, precision: 'int8', listed: 'int4' },
    { types: { attention: q4, feedForward: q8 }, precision: 'int8', listed: 'int4' },
    { types: { attention: q8, feedForward: q4 }, precision: 'int8', listed: 'int8' },
    { types: { attention: q8, feedForward: q8 }, precision: 'int8', listed: 'int8' },
    { types: { attention: q4, feedForward: q4 }, precision: 'fp32', listed: 'fp32' },
    { types: { attention: q8, feedForward: q8 }, precision: 'int4', listed: 'int4' },
  ] as const)('is $listed for $types as $precision', async ({ types, precision, listed }) => {
    const keys = {
      ...KEYS,
      'qwen2.embedding_length': { u32: 64 },
      'qwen2.feed_forward_length': { u32: 64 },
      'tokenizer.ggml.tokens': { texts: Array.from({ length: 512 }, (_, id) => `t${id}`) },
    };
    const directory = temporaryDirectory();
    const checkpoint = await opened(write(directory, 'model.gguf', writeGguf(keys, layer(types))));
    const built = await buildModel(checkpoint, { precision, directory: join(directory, 'built') });
    expect(built.precision).toBe(listed);
    expect(readProvenance(textsOf(built.directory))?.precision).toBe(listed);
  });
});

describe('a split model', () => {
  const embedding = randomBlocks(8, 16, 34, 0);
  const norm: Tensor = {
    name: 'output_norm.weight',
    type: 0,
    dimensions: [256],
    data: Buffer.alloc(1024, 1),
  };
  const part = (
    index: number,
    keys: Readonly<Record<string, Value>>,
    tensors: readonly Tensor[],
    count = 2,
  ) =>
    writeGguf(
      {
        ...keys,
        'split.no': { u16: index },
        'split.count': { u16: count },
        'split.tensors.count': { i32: 2 },
      },
      tensors,
    );
  const name = (index: number) => `model-0000${index}-of-00002.gguf`;

  test('opens by any of its files', async () => {
    const directory = temporaryDirectory();
    write(directory, name(1), part(0, KEYS, [embedding]));
    const second = write(directory, name(2), part(1, {}, [norm]));
    const checkpoint = await opened(second);
    expect([...checkpoint.tensors.keys()].sort()).toEqual(['model.embed_tokens.weight', 'model.norm.weight']);
    expect(checkpoint.config.hidden_size).toBe(256);
    expect((await checkpoint.readRows('model.norm.weight', 0, 1)).length).toBe(256);
  });

  test.each<[string, Buffer | null, string]>([
    ['lacks a file', null, 'model-00002-of-00002.gguf is missing'],
    ['has a file of another split', part(1, {}, [norm], 3), 'says that it is file 2 of 3'],
    ['has a file twice', part(0, {}, [norm]), 'says that it is file 1 of 2'],
    ['lacks a tensor', part(1, {}, []), 'the files have 1 tensors instead of 2'],
    ['has a tensor twice', part(1, {}, [embedding]), 'tensor "token_embd.weight" occurs twice'],
  ])('is refused if it %s', (_, second, message) => {
    const directory = temporaryDirectory();
    const first = write(directory, name(1), part(0, KEYS, [embedding]));
    if (second !== null) write(directory, name(2), second);
    expect(() => openGguf(first)).toThrow(message);
  });

  test('is refused under another name', () => {
    const path = write(temporaryDirectory(), 'renamed.gguf', part(0, KEYS, [embedding]));
    expect(() => openGguf(path)).toThrow('a split model needs the names NAME-00001-of-0000N.gguf');
  });
});

test.each<[string, Readonly<Record<string, Value>>, string]>([
  [
    'architecture',
    { 'general.architecture': { text: 'rwkv7' } },
    'the architecture "rwkv7" is unknown; known',
  ],
  ['key', { 'qwen2.attention.scale': { f32: 2 } }, 'key "qwen2.attention.scale" is unknown'],
  [
    'kind of head count',
    { 'qwen2.attention.head_count': { i32s: [2, 4] } },
    'head_count" is {"0":2,"1":4}; it',
  ],
])('refuses an unknown %s by name', (_, keys, message) => {
  const file = writeGguf({ ...KEYS, ...keys }, [randomBlocks(8, 16, 34, 0)]);
  const path = write(temporaryDirectory(), 'model.gguf', file);
  expect(() => openGguf(path)).toThrow(message);
});

test('refuses a tensor that the architecture does not have', () => {
  const tensor = { ...randomBlocks(8, 16, 34, 0), name: 'blk.0.ssm_in.weight' };
  const file = writeGguf(KEYS, [randomBlocks(8, 16, 34, 0), tensor]);
  const path = write(temporaryDirectory(), 'model.gguf', file);
  expect(() => openGguf(path)).toThrow('tensor "blk.0.ssm_in.weight" is unknown for the architecture qwen2');
});

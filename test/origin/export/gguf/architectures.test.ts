import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'vitest';
import type { Checkpoint } from '../../../../origin/export/checkpoint/checkpoint.ts';
import { describeOfAnySize } from '../../../../origin/export/families/families.ts';
import { openGguf } from '../../../../origin/export/gguf/gguf-checkpoint.ts';
import { temporaryDirectory } from '../../model/synthetic-runner.ts';

interface Case {
  /** config.json as published checkpoints of the family have it. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Shapes of the tensors in model.safetensors. */
  readonly tensors: Readonly<Record<string, readonly number[]>>;
  /** What llama.cpp's converter made of it in float16, compressed, as base64. */
  readonly gguf: string;
}

/**
 * Tiny models that llama.cpp's converter (of llama-cpp-python 0.3.36) has converted. The contexts of glm and
 * hunyuan_v1_dense are those that the converter writes whatever the configuration says.
 */
const cases = JSON.parse(readFileSync(new URL('architectures.json', import.meta.url), 'utf8')) as Readonly<
  Record<string, Case>
>;

/** The values of the fixtures' tensors, one after the other in the order of the names: exact in float16. */
const valueAt = (index: number) => (index * 769) % 2039;

const open: Checkpoint[] = [];
afterAll(async () => {
  for (const checkpoint of open) await checkpoint.close();
});

function opened(name: string): Checkpoint {
  const path = join(temporaryDirectory(), `${name}.gguf`);
  writeFileSync(path, gunzipSync(Buffer.from(cases[name]!.gguf, 'base64')));
  const checkpoint = openGguf(path);
  open.push(checkpoint);
  return checkpoint;
}

const size = (shape: readonly number[]) => shape.reduce((product, count) => product * count, 1);

/** Rounds numbers, because the file has scales in single precision. */
const rounded = (design: unknown): unknown =>
  JSON.parse(
    JSON.stringify(design, (_, value) => (typeof value === 'number' ? Number(value.toPrecision(6)) : value)),
  );

interface Values {
  readonly shape: readonly number[];
  readonly values: readonly number[];
}
type Tensors = ReadonlyMap<string, Values>;

function convertedTensors({ tensors }: Case): Tensors {
  const made = new Map<string, Values>();
  let first = 0;
  for (const name of Object.keys(tensors).sort()) {
    const shape = tensors[name]!;
    const start = first;
    first += size(shape);
    made.set(name, { shape, values: Array.from({ length: size(shape) }, (_, at) => valueAt(start + at)) });
  }
  return made;
}

/** The same tensors with Llama's names. Their queries, keys and values lie together for each KV head. */
function internlm2AsLlama(tensors: Tensors): Tensors {
  const [columns, headSize] = [8, 4];
  const made = new Map<string, Values>();
  for (const [name, tensor] of tensors) {
    if (name.endsWith('wqkv.weight')) {
      for (const [letter, first, heads] of [
        ['q', 0, 2],
        ['k', 2, 1],
        ['v', 3, 1],
      ] as const) {
        const start = first * headSize * columns;
        const rows = heads * headSize;
        const values = tensor.values.slice(start, start + rows * columns);
        made.set(`model.layers.0.self_attn.${letter}_proj.weight`, { shape: [rows, columns], values });
      }
    } else
      made.set(
        INTERNLM2.reduce((all, [from, to]) => all.replace(from, to), name),
        tensor,
      );
  }
  return made;
}

const INTERNLM2 = [
  ['model.tok_embeddings', 'model.embed_tokens'],
  ['output.weight', 'lm_head.weight'],
  ['attention.wo', 'self_attn.o_proj'],
  ['feed_forward.w1', 'mlp.gate_proj'],
  ['feed_forward.w2', 'mlp.down_proj'],
  ['feed_forward.w3', 'mlp.up_proj'],
  ['attention_norm', 'input_layernorm'],
  ['ffn_norm', 'post_attention_layernorm'],
] as const;

describe.each(Object.keys(cases))('%s', (name) => {
  const converted = convertedTensors(cases[name]!);
  const expected = name === 'internlm2' ? internlm2AsLlama(converted) : converted;

  test('gives the tensors that were converted', async () => {
    const checkpoint = opened(name);
    const unexpected = [...checkpoint.tensors.keys()].filter((tensor) => !expected.has(tensor));
    expect(unexpected).toEqual([]);
    for (const [tensor, { shape, values }] of expected) {
      if (/act_fn\.(beta|eps)$/.test(tensor)) continue; // constants of the family
      expect(checkpoint.tensors.get(tensor)?.shape, tensor).toEqual(shape);
      const rows = size(shape.slice(0, -1));
      const half = Math.floor(rows / 2);
      const read = [
        ...(await checkpoint.readRows(tensor, 0, half)),
        ...(await checkpoint.readRows(tensor, half, rows - half)),
      ];
      expect(read, tensor).toEqual(values);
    }
  });

  test('gives the design of the configuration that was converted', () => {
    const checkpoint = opened(name);
    const { config } = cases[name]!;
    const fields = name === 'internlm2' ? { ...config, model_type: 'llama', bias: null } : config;
    const original = describeOfAnySize(fields, new Map(expected)).design;
    const design = describeOfAnySize(checkpoint.config, checkpoint.tensors).design;
    expect(rounded(design)).toEqual(rounded(original));
  });
});

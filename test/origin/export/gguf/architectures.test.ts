import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'vitest';
import type { Checkpoint } from '../../../../origin/export/checkpoint/checkpoint.ts';
import { describeOfAnySize } from '../../../../origin/export/families/families.ts';
import { openGguf } from '../../../../origin/export/gguf/gguf-checkpoint.ts';
import { temporaryDirectory } from '../../model/synthetic-runner.ts';

interface Case {
  readonly name: string;
  /** config.json as published checkpoints of the family have it. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Shapes of the tensors in model.safetensors. */
  readonly tensors: Readonly<Record<string, readonly number[]>>;
  /** Factors that the converter has multiplied weights by, by a part of their names. */
  readonly multiplied?: Readonly<Record<string, number>>;
  /** What llama.cpp's converter made of it in float16, compressed, as base64. */
  readonly gguf: string;
}

/**
 * Tiny models that llama.cpp's converter (of November 2026) has converted. The contexts of glm and
 * hunyuan_v1_dense are those that the converter writes whatever the configuration says.
 */
const cases = new Map(
  readFileSync(new URL('architectures.jsonl', import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Case)
    .map((each) => [each.name, each]),
);

/** Values of the fixtures' tensors, one after the other in the order of the names: eighths from 1 on. */
function valueAt(index: number): number {
  let hash = Math.imul(index + 1, 0x9e3779b1);
  hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return 1 + (hash >>> 29) / 8;
}

const open: Checkpoint[] = [];
afterAll(async () => {
  for (const checkpoint of open) await checkpoint.close();
});

function opened(name: string): Checkpoint {
  const path = join(temporaryDirectory(), `${name}.gguf`);
  writeFileSync(path, gunzipSync(Buffer.from(cases.get(name)!.gguf, 'base64')));
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

function convertedTensors({ tensors, multiplied = {} }: Case): Tensors {
  const made = new Map<string, Values>();
  let first = 0;
  for (const name of Object.keys(tensors).sort()) {
    const shape = tensors[name]!;
    const start = first;
    first += size(shape);
    const factor = Object.entries(multiplied).find(([part]) => name.includes(`${part}.`))?.[1] ?? 1;
    const values = Array.from({ length: size(shape) }, (_, at) => factor * valueAt(start + at));
    // Nemotron H has another beginning of its names in transformers 5.
    made.set(name.replace(/^backbone/, 'model'), { shape, values });
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

/** Granite 4 without states, with the names and fields of Granite 3. */
function granite4AsGranite3(tensors: Tensors): Tensors {
  const made = new Map(tensors);
  const place = 'model.layers.0.';
  const taken = (name: string): Values => {
    const tensor = made.get(`${place}shared_mlp.${name}.weight`)!;
    made.delete(`${place}shared_mlp.${name}.weight`);
    return tensor;
  };
  const { shape, values } = taken('input_linear');
  const [rows = 0, columns = 0] = shape;
  for (const [index, name] of ['gate', 'up'].entries()) {
    const half = values.slice((index * values.length) / 2, ((index + 1) * values.length) / 2);
    made.set(`${place}mlp.${name}_proj.weight`, { shape: [rows / 2, columns], values: half });
  }
  return made.set(`${place}mlp.down_proj.weight`, taken('output_linear'));
}

/** What the converter stores under the names of another family. */
const RENAMED: Readonly<Record<string, (tensors: Tensors) => Tensors>> = {
  internlm2: internlm2AsLlama,
  'granitemoehybrid-attention': granite4AsGranite3,
};
const RENAMED_FIELDS: Readonly<Record<string, Case['config']>> = {
  internlm2: { model_type: 'llama', bias: null },
  'granitemoehybrid-attention': {
    ...Object.fromEntries(
      ['shared_intermediate_size', 'num_local_experts', 'num_experts_per_tok', 'layer_types']
        .concat(
          ['n_heads', 'd_head', 'n_groups', 'd_state', 'd_conv', 'expand'].map((name) => `mamba_${name}`),
        )
        .map((name) => [name, null]),
    ),
    model_type: 'granite',
    intermediate_size: 12,
    position_embedding_type: null,
  },
};

describe.each([...cases.keys()])('%s', (name) => {
  const converted = convertedTensors(cases.get(name)!);
  // Layers that predict further tokens follow the others, and are not read.
  const layers = Number(cases.get(name)!.config.num_hidden_layers ?? Infinity);
  const isFurther = (tensor: string) => Number(/\.layers\.(\d+)\./.exec(tensor)?.[1] ?? -1) >= layers;
  const served = new Map([...converted].filter(([tensor]) => !isFurther(tensor)));
  const expected = RENAMED[name]?.(served) ?? served;

  test('gives the tensors that were converted', async () => {
    const checkpoint = opened(name);
    const unexpected = [...checkpoint.tensors.keys()].filter((tensor) => !expected.has(tensor));
    expect(unexpected.filter((tensor) => !tensor.startsWith(`blk.${layers}.`))).toEqual([]);
    for (const [tensor, { shape, values }] of expected) {
      if (/act_fn\.(beta|eps)$/.test(tensor)) continue; // constants of the family
      expect(checkpoint.tensors.get(tensor)?.shape, tensor).toEqual(shape);
      const rows = size(shape.slice(0, -1));
      const half = Math.floor(rows / 2);
      const read = [
        ...(await checkpoint.readRows(tensor, 0, half)),
        ...(await checkpoint.readRows(tensor, half, rows - half)),
      ];
      // Decays x are stored as −eˣ in single precision.
      const isDecay = tensor.endsWith('A_log');
      expect(isDecay ? read.map((value) => Number(value.toFixed(5))) : read, tensor).toEqual(values);
    }
  });

  test('gives the design of the configuration that was converted', () => {
    const checkpoint = opened(name);
    const { config } = cases.get(name)!;
    const fields = { ...config, ...RENAMED_FIELDS[name] };
    const original = describeOfAnySize(fields, new Map(expected)).design;
    const design = describeOfAnySize(checkpoint.config, checkpoint.tensors).design;
    expect(rounded(design)).toEqual(rounded(original));
  });
});

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import path from 'node:path';
import type { Matrix } from '../../../../origin/export/checkpoint/matrix.ts';
import type { MatrixReader, Shape } from '../../../../origin/export/checkpoint/matrix-reader.ts';
import type { Weight } from '../../../../origin/export/design/weight-design.ts';
import { describeFamily } from '../../../../origin/export/families/families.ts';
import { writeDecoder } from '../../../../origin/export/graph/decoder-graph.ts';
import { GraphBuilder } from '../../../../origin/export/graph/graph-builder.ts';
import { CASES } from '../../../origin/export/family-cases.ts';
import { withHeader } from '../../../origin/export/written-checkpoint.ts';
import { mulberry32 } from '../../../support/random.ts';
import { writeByteTokenizer } from '../../../support/synthetic/byte-tokenizer.ts';
import type { PublishedModel } from './published.ts';

/** Writes checkpoints of published sizes with random weights in bfloat16, shard by shard. */

const SHARD_BYTES = 2e9;

type Shapes = ReadonlyMap<string, readonly number[]>;

/** Writes a model directory. Returns the bytes of its weights. */
export async function writeRandomCheckpoint(directory: string, model: PublishedModel): Promise<number> {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const shapes = shapesOf(model);
  const shards = shardsOf(shapes);
  const places: Record<string, string> = {};
  for (const [index, shard] of shards.entries()) {
    const file = `model-${fiveDigits(index + 1)}-of-${fiveDigits(shards.length)}.safetensors`;
    for (const name of shard.keys()) places[name] = file;
    await writeShard(path.join(directory, file), shard);
  }
  const json = (name: string, value: unknown) =>
    writeFileSync(path.join(directory, name), JSON.stringify(value));
  json('model.safetensors.index.json', { weight_map: places });
  json('config.json', model.config);
  writeByteTokenizer(directory, Number(model.config.vocab_size));
  return [...shapes.values()].reduce((sum, shape) => sum + bytesOf(shape), 0);
}

const fiveDigits = (value: number): string => String(value).padStart(5, '0');
const bytesOf = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 2);

/** The tensors that the builder reads. Optional ones are those of the test models. */
function shapesOf({ name, config }: PublishedModel): Shapes {
  const small = CASES.find((one) => one.config.model_type === config.model_type);
  if (small === undefined) throw new Error(`${name}: no model of this family in families.jsonl`);
  const pattern = (tensor: string) => tensor.replace(/\d+/g, '*');
  const known = new Set(Object.keys(small.tensors).map(pattern));
  const { design } = describeFamily(config, { has: (tensor) => known.has(pattern(tensor)) });
  const shapes = new Map<string, number[]>();
  const weights = {
    open(weight: Weight, shape: Shape, rows: number | null, columns: number): Matrix {
      // A table of learned positions has any number of rows.
      const count = rows ?? design.maxPositions + (design.learnedPositions?.offset ?? 0);
      for (const part of weight) {
        const ends = part.rows?.map(({ first, count: taken, step = 1 }) => first + (taken - 1) * step + 1);
        const before = shapes.get(part.tensor) ?? [];
        const height = Math.max(...(ends ?? [count]), before[part.transposed ? 1 : 0] ?? 0);
        const matrix = part.transposed ? [columns, height] : [height, columns];
        shapes.set(part.tensor, shape === 'vector' ? [height] : matrix);
      }
      const unread = () => Promise.reject(new Error('only shapes are wanted'));
      return { name, rows: count, columns, blocks: null, readRows: unread };
    },
    widthOf: () => Number(config.word_embed_proj_dim),
  };
  const graph = new GraphBuilder('none');
  const context = { graph, precision: 'fp32', type: 'float32', blockSize: 32 } as const;
  writeDecoder({ ...context, weights: weights as unknown as MatrixReader, quantizer: null as never }, design);
  return shapes;
}

function shardsOf(shapes: Shapes): Map<string, readonly number[]>[] {
  const shards = [new Map<string, readonly number[]>()];
  let bytes = 0;
  for (const [name, shape] of shapes) {
    if (bytes > 0 && bytes + bytesOf(shape) > SHARD_BYTES) {
      shards.push(new Map());
      bytes = 0;
    }
    shards.at(-1)!.set(name, shape);
    bytes += bytesOf(shape);
  }
  return shards;
}

async function writeShard(file: string, shapes: Shapes): Promise<void> {
  let end = 0;
  const entries = [...shapes].map(([name, shape]) => {
    const begin = end;
    end += bytesOf(shape);
    return [name, { dtype: 'BF16', shape, data_offsets: [begin, end] }] as const;
  });
  await using handle = await open(file, 'w');
  await handle.appendFile(withHeader(Object.fromEntries(entries), Buffer.alloc(0)));
  for (const [name, shape] of shapes) await writeTensor(handle, name, shape);
}

/** Norms are 1, biases 0, matrices uniform such that they keep the size of what they multiply. */
async function writeTensor(handle: FileHandle, name: string, shape: readonly number[]): Promise<void> {
  const isNorm = shape.length === 1 && name.endsWith('weight');
  const values = shape.length > 1 ? uniform(Math.sqrt(3 / shape.at(-1)!)) : constant(Number(isNorm));
  for (let left = bytesOf(shape); left > 0; left -= values.length) {
    await handle.appendFile(values.subarray(0, Math.max(0, left)));
  }
}

/** Upper halves of float32: bfloat16. */
const halvesOf = (values: Float32Array): Buffer =>
  Buffer.from(Uint16Array.from(new Uint32Array(values.buffer), (word) => word >>> 16).buffer);

const constant = (value: number): Buffer => halvesOf(new Float32Array(65_536).fill(value));

const uniformByAmplitude = new Map<number, Buffer>();

/** A prime number of values, so that no row repeats another. */
function uniform(amplitude: number): Buffer {
  const random = mulberry32(1);
  const known = uniformByAmplitude.get(amplitude);
  const values =
    known ?? halvesOf(Float32Array.from({ length: 1_000_003 }, () => amplitude * (2 * random() - 1)));
  uniformByAmplitude.set(amplitude, values);
  return values;
}

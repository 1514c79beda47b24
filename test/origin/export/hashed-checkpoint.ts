import {
  type Checkpoint,
  type CheckpointTensor,
  columnsOf,
} from '../../../origin/export/checkpoint/checkpoint.ts';

/** The weights of test/tools/exporters/families.py: a hash of the tensor's name and the element's index. */

/** The finalizer of MurmurHash3. */
function mixed(value: number): number {
  const once = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35);
  return (twice ^ (twice >>> 16)) >>> 0;
}

const seedOf = (name: string): number =>
  Buffer.from(name).reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193) >>> 0, 0x811c9dc5);

/** Families whose norms add 1 to their weight. */
const ADDING_FAMILIES = /^(gemma(?!4|3n)|recurrent_gemma|nemotron$|qwen3_next|qwen3_5)/;

/** Norms are near 1, biases small, matrices such that they keep the size of what they multiply. */
function centreAndAmplitude(
  family: string,
  name: string,
  shape: readonly number[],
): readonly [centre: number, amplitude: number] {
  // Gemma 3n and 4 do not divide scores.
  if (/^gemma(4|3n)/.test(family) && name.includes('q_norm')) return [0, 0.25];
  if (name.endsWith('weight') && (shape.length === 1 || name.includes('norm'))) {
    return [ADDING_FAMILIES.test(family) && !name.includes('linear_attn') ? 0 : 1, 0.25];
  }
  if (/(layer_scalar|router\.scale|per_expert_scale|correct_output_scale)$/.test(name)) return [1, 0.25];
  // What it reads is divided by its width.
  if (name.includes('modality_router')) return [0, Math.sqrt(shape.at(-1)!)];
  // States that last for one to fifty positions.
  if (name.endsWith('A_log')) return [-2, 2];
  if (shape.length < 2 || name.endsWith('bias')) return [0, 0.2];
  if (/embed|wte|wpe/.test(name)) return [0, 0.25];
  return [
    0,
    (/attention\.q_proj|(\.linear|prediction_coefs)\.weight$/.test(name) ? 0.25 : 2) /
      Math.sqrt(shape.at(-1)!),
  ];
}

/** Elements [first, first + count) of a tensor. */
function hashedWeights(
  family: string,
  { name, shape }: Pick<CheckpointTensor, 'name' | 'shape'>,
  first: number,
  count: number,
): Float32Array {
  if (name.endsWith('.beta')) return new Float32Array(count).fill(0.5);
  if (name.endsWith('.eps')) return new Float32Array(count).fill(-1e-6);
  const seed = seedOf(name);
  const [centre, amplitude] = centreAndAmplitude(family, name, shape);
  return Float32Array.from({ length: count }, (_, index) => {
    const bits = mixed(mixed(first + index) ^ seed);
    return centre + amplitude * ((bits >>> 8) / 2 ** 23 - 1);
  });
}

/** A checkpoint of tensors of these shapes, computed when they are read. */
export function hashedCheckpoint(
  config: Readonly<Record<string, unknown>>,
  shapes: Readonly<Record<string, readonly number[]>>,
): Checkpoint {
  const tensors = new Map(
    Object.entries(shapes).map(([name, shape]) => [
      name,
      { name, shape, storedAs: 'F32', storedBytes: 0, blocks: null },
    ]),
  );
  return {
    source: 'hashed',
    config,
    tensors,
    files: [],
    readRows: async (name, first, count) => {
      const tensor = tensors.get(name)!;
      const columns = columnsOf(tensor);
      return hashedWeights(String(config.model_type), tensor, first * columns, count * columns);
    },
    readBlocks: () => Promise.reject(new Error('floats are not in blocks')),
    close: async () => {},
  };
}

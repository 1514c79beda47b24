import { ModelError } from '@continuo/origin/model/config/model-json.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';
import {
  type BlockFormat,
  type BlockRows,
  type Checkpoint,
  type CheckpointTensor,
  columnsOf,
} from '../checkpoint/checkpoint.ts';
import { joinFloats, turnedRows } from '../checkpoint/matrix.ts';
import { describeOfAnySize } from '../families/families.ts';
import { type Architecture, NEUTRAL_KEYS, type StoredTensors } from './architecture.ts';
import { decodeBlocks } from './block-types.ts';
import { EXPERT_ARCHITECTURES } from './expert-architectures.ts';
import { GEMMA3N_ARCHITECTURE } from './gemma3n-architecture.ts';
import { GEMMA4_ARCHITECTURE } from './gemma4-architecture.ts';
import { GgufFile } from './gguf-file.ts';
import type { GgufTensor } from './gguf-header.ts';
import { GgufKeys } from './gguf-keys.ts';
import { GPT_ARCHITECTURES } from './gpt-architectures.ts';
import { LATENT_ARCHITECTURES } from './latent-architecture.ts';
import { LINEAR_ATTENTION_ARCHITECTURES } from './linear-attention-architectures.ts';
import { LLAMA_ARCHITECTURES } from './llama-architectures.ts';
import { STATE_ARCHITECTURES } from './state-architectures.ts';
import { recipesOf, type TensorRecipe } from './tensor-recipe.ts';
import { tokenizerFilesOf } from './tokenizer-of-file.ts';

const ARCHITECTURES: readonly Architecture[] = [
  ...LLAMA_ARCHITECTURES,
  ...GPT_ARCHITECTURES,
  ...EXPERT_ARCHITECTURES,
  ...LINEAR_ATTENTION_ARCHITECTURES,
  ...STATE_ARCHITECTURES,
  ...LATENT_ARCHITECTURES,
  GEMMA3N_ARCHITECTURE,
  GEMMA4_ARCHITECTURE,
];

/**
 * Opens a GGUF file, or a split model by any of its files, as if it were Hugging Face's checkpoint.
 * @throws ModelError that names the file and the key or tensor
 */
export function openGguf(path: string): Checkpoint {
  const file = GgufFile.open(path);
  try {
    const architecture = architectureOf(file);
    const keys = new GgufKeys(file.metadata, architecture.name);
    const tensors = storedTensors(file);
    keys.ignore(...NEUTRAL_KEYS);
    const config = {
      ...architecture.config(keys, tensors),
      vocab_size: tensors.shape('token_embd.weight')[0],
      tie_word_embeddings: !tensors.has('output.weight'),
    };
    // The design has Hugging Face's names, whatever tensors there are.
    const { design } = describeOfAnySize(config, new Set());
    const recipes = recipesOf(architecture, keys, file.tensors, { design, stored: tensors });
    keys.requireAllRead();
    const { files, endIds, beginId } = tokenizerFilesOf(file.metadata);
    return new GgufCheckpoint(file, {
      config: { ...config, bos_token_id: beginId, eos_token_id: endIds },
      recipes,
      files,
    });
  } catch (error) {
    file.close();
    throw new ModelError(`${path}: ${errorMessage(error)}`);
  }
}

function architectureOf({ metadata }: GgufFile): Architecture {
  const name = metadata.get('general.architecture');
  const architecture = ARCHITECTURES.find((each) => each.name === name);
  if (architecture !== undefined) return architecture;
  const names = ARCHITECTURES.map((each) => each.name).toSorted();
  throw new ModelError(`the architecture ${JSON.stringify(name)} is unknown; known are ${names.join(', ')}`);
}

function storedTensors(file: GgufFile): StoredTensors {
  return {
    has: (name) => file.tensors.has(name),
    shape: (name) => {
      const tensor = file.tensors.get(name);
      if (tensor === undefined) throw new ModelError(`tensor ${JSON.stringify(name)} is missing`);
      return tensor.shape;
    },
    values: (name) => {
      const tensor = file.tensors.get(name);
      return tensor === undefined ? null : Array.from(readRun(file, tensor, 0, tensor.bytes));
    },
  };
}

/** Reads and decodes bytes of a tensor: whole blocks. */
function readRun(file: GgufFile, tensor: GgufTensor, offset: number, length: number): Float32Array {
  const bytes = new Uint8Array(length);
  file.read(tensor.name, offset, bytes);
  return decodeBlocks(tensor.type, bytes);
}

/** Consecutive units of one source. */
interface Run {
  readonly source: GgufTensor | TensorRecipe;
  readonly first: number;
  readonly count: number;
}

class GgufCheckpoint implements Checkpoint {
  readonly source: string;
  readonly config: Checkpoint['config'];
  readonly tensors: ReadonlyMap<string, CheckpointTensor>;
  readonly files: Checkpoint['files'];
  readonly #file: GgufFile;
  readonly #recipes: ReadonlyMap<string, TensorRecipe>;
  /** The matrix that was transposed last, because its rows are columns of the file's. */
  #turned: { readonly name: string; readonly matrix: number; readonly values: Float32Array } | null = null;

  constructor(
    file: GgufFile,
    parts: Pick<Checkpoint, 'config' | 'files'> & { readonly recipes: readonly TensorRecipe[] },
  ) {
    this.source = file.path;
    this.config = parts.config;
    this.files = parts.files;
    this.#file = file;
    this.#recipes = new Map(parts.recipes.map((recipe) => [recipe.name, recipe]));
    this.tensors = new Map(parts.recipes.map((recipe) => [recipe.name, describe(recipe)]));
  }

  async readRows(name: string, first: number, count: number): Promise<Float32Array> {
    return this.#readRows(this.#recipe(name), first, count);
  }

  async readBlocks(name: string, first: number, count: number): Promise<BlockRows> {
    const recipe = this.#recipe(name);
    const { type } = recipe.sources[0] as GgufTensor;
    const { groupSize, levels, scale, pack } = type.integers!;
    const elements = count * recipe.unitLength;
    const result = new Int8Array(pack === null ? elements : elements / 2);
    const packed = new Uint8Array(result.buffer);
    const scales = new Float32Array(elements / groupSize);
    let to = 0;
    for (const run of runsOf(recipe, first, count)) {
      const { offset, length } = bytesOf(run, recipe.unitLength, type);
      const bytes = new Uint8Array(length);
      this.#file.read(run.source.name, offset, bytes);
      for (let at = 0; at < length; at += type.bytes, to += type.elements) {
        if (pack === null) levels(bytes, at, result, to);
        else pack(bytes, at, packed, to / 2);
        for (let group = 0; group < type.elements / groupSize; group += 1) {
          scales[to / groupSize + group] = scale(bytes, at, group);
        }
      }
    }
    if (pack === null) addMiddle(result.buffer);
    return { levels: packed, scales };
  }

  async close(): Promise<void> {
    this.#file.close();
  }

  #recipe(name: string): TensorRecipe {
    const recipe = this.#recipes.get(name);
    if (recipe === undefined) throw new ModelError(`${this.source}: tensor ${name} is missing`);
    return recipe;
  }

  #readRows(recipe: TensorRecipe, first: number, count: number): Float32Array {
    if (recipe.values !== undefined) return Float32Array.from(recipe.values.slice(first, first + count));
    if (recipe.transposed) return this.#readTransposed(recipe, first, count);
    const units = columnsOf(recipe) / recipe.unitLength;
    const values = this.#readUnits(recipe, first * units, count * units);
    const { column, unitLength } = recipe;
    return column === null
      ? values
      : values.map((_, at) => values[at - (at % unitLength) + column(at % unitLength).row]!);
  }

  #readUnits(recipe: TensorRecipe, first: number, count: number): Float32Array {
    const { unitLength, change } = recipe;
    const runs = [...runsOf(recipe, first, count)].map((run) => {
      if ('sources' in run.source) return this.#readRows(run.source, run.first, run.count);
      const { offset, length } = bytesOf(run, unitLength, run.source.type);
      return readRun(this.#file, run.source, offset, length);
    });
    const values = joinFloats(runs);
    return change === null ? values : values.map(change);
  }

  #readTransposed(recipe: TensorRecipe, first: number, count: number): Float32Array {
    const [inputs = 1, outputs = 1] = recipe.shape.slice(-2);
    const parts: Float32Array[] = [];
    for (let row = first; row < first + count; ) {
      const start = row % inputs;
      const length = Math.min(inputs - start, first + count - row);
      const stored = this.#matrix(recipe, Math.floor(row / inputs), outputs);
      parts.push(turnedRows(stored, inputs, start, length));
      row += length;
    }
    return joinFloats(parts);
  }

  /** A matrix [outputs, inputs] as the file has it. */
  #matrix(recipe: TensorRecipe, matrix: number, outputs: number): Float32Array {
    if (this.#turned?.name !== recipe.name || this.#turned.matrix !== matrix) {
      this.#turned = null;
      const values = this.#readUnits(recipe, matrix * outputs, outputs);
      this.#turned = { name: recipe.name, matrix, values };
    }
    return this.#turned.values;
  }
}

function* runsOf({ sources, unit }: TensorRecipe, first: number, count: number): Generator<Run> {
  for (let index = first; index < first + count; ) {
    const start = unit(index);
    let length = 1;
    for (; index + length < first + count; length += 1) {
      const next = unit(index + length);
      if (next.source !== start.source || next.row !== start.row + length) break;
    }
    yield { source: sources[start.source]!, first: start.row, count: length };
    index += length;
  }
}

/** Place and length of a run in bytes. */
function bytesOf({ first, count }: Run, unitLength: number, type: GgufTensor['type']) {
  const unitBytes = (unitLength / type.elements) * type.bytes;
  return { offset: first * unitBytes, length: count * unitBytes };
}

const storedTensorsOf = ({ sources }: TensorRecipe): readonly GgufTensor[] =>
  sources.flatMap((source) => ('sources' in source ? storedTensorsOf(source) : source));

function describe(recipe: TensorRecipe): CheckpointTensor {
  const { name, shape } = recipe;
  const sources = storedTensorsOf(recipe);
  const bytes = sources.reduce((sum, source) => sum + source.bytes, 0);
  const elements = (tensor: Pick<TensorRecipe, 'shape'>) =>
    tensor.shape.reduce((product, size) => product * size, 1);
  const stored = sources.reduce((sum, source) => sum + elements(source), 0);
  return {
    name,
    shape,
    storedAs: sources[0]?.type.name ?? 'F32',
    storedBytes: stored === 0 ? 4 : (bytes / stored) * elements(recipe),
    blocks: blockFormat(recipe),
  };
}

/** Rows in blocks can be used if they are whole rows of one integer type. */
function blockFormat(recipe: TensorRecipe): BlockFormat | null {
  const { sources, shape, unitLength, column, change, transposed } = recipe;
  const [integers, ...others] = storedTensorsOf(recipe).map(({ type }) => type.integers);
  if (!integers || others.some((kind) => kind !== integers)) return null;
  if (sources.some((source) => 'sources' in source) || column !== null || change !== null) return null;
  if (transposed || shape.length < 2 || unitLength !== shape.at(-1)) return null;
  return { bits: integers.bits, blockSize: integers.groupSize };
}

/** Adds 128 to each level: a row has a multiple of 16. */
function addMiddle(levels: ArrayBuffer): void {
  const words = new Uint32Array(levels);
  for (let index = 0; index < words.length; index += 1) words[index]! ^= 0x8080_8080;
}

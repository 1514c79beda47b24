import { existsSync, readdirSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { isAbsolute, join, normalize } from 'node:path';
import { textsOf } from '@continuo/origin/model/config/model-directory.ts';
import { ModelError, readModelJson } from '@continuo/origin/model/config/model-json.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';
import { words } from '@continuo/shared/field-names.ts';
import * as z from 'zod';
import {
  type Checkpoint,
  type CheckpointFile,
  type CheckpointTensor,
  columnsOf,
  rowsOf,
} from './checkpoint.ts';
import { DECODERS } from './float-formats.ts';
import { readHeader, type StoredTensor } from './safetensors-header.ts';

export const SAFETENSORS = 'model.safetensors';
/** Names the file of each tensor, if there are several: the shards. */
export const SAFETENSORS_INDEX = 'model.safetensors.index.json';
/** Pickled weights, and not the state of a training beside them. */
export const PICKLED_WEIGHTS =
  /^(?!(?:.*\/)?(?:training_args|optimizer|scheduler|scaler|rng_state)).*\.(?:bin|pt|pth|ckpt)$/;
/**
 * Endings of the names of a float8 weight's scales: DeepSeek's and Qwen's, one for each block; others', one
 * for each row or one for all. Both multiply.
 */
const SCALES = ['_scale_inv', '_scale'];

/** Files of a published model that a model directory keeps. */
const KEPT_FILES = words(`
  tokenizer.json tokenizer_config.json special_tokens_map.json added_tokens.json generation_config.json
  vocab.json merges.txt tokenizer.model LICENSE
`);

const configSchema = z.record(z.string(), z.unknown());
const indexSchema = z.object({ weight_map: z.record(z.string(), z.string()) });

const quantizationSchema = z.object({
  quantization_config: z
    .object({
      quant_method: z.string().optional(),
      weight_block_size: z.array(z.int().positive()).nullish(),
      format: z.string().optional(),
    })
    .nullish(),
});

interface OpenTensor extends StoredTensor {
  readonly file: string;
  readonly handle: FileHandle;
}

/**
 * Opens a directory with config.json and model.safetensors, or its shards with their index.
 * @throws ModelError that names what is missing, damaged or unsupported
 */
export async function openSafetensors(directory: string): Promise<Checkpoint> {
  const config = readConfig(directory);
  const weights = await openWeights(directory);
  return new SafetensorsCheckpoint(directory, config, weights, float8BlockSize(config));
}

/** Reads config.json. @throws ModelError if there is none, or it names an unsupported quantization */
export function readConfig(directory: string): Checkpoint['config'] {
  const config = readModelJson(textsOf(directory), 'config.json', configSchema);
  if (config === undefined) throw new ModelError(`${directory} has no config.json`);
  float8BlockSize(config);
  return config;
}

/** Opens one file of tensors without a configuration, such as an adapter's. @throws ModelError */
export async function openSafetensorsFile(directory: string, file: string): Promise<Checkpoint> {
  return new SafetensorsCheckpoint(directory, {}, await openFiles(directory, [file]), []);
}

interface Weights {
  readonly tensors: ReadonlyMap<string, OpenTensor>;
  readonly handles: readonly FileHandle[];
}

/** Opens the file of a directory, or its shards. @throws ModelError */
async function openWeights(directory: string): Promise<Weights> {
  const places = readModelJson(textsOf(directory), SAFETENSORS_INDEX, indexSchema)?.weight_map;
  return openFiles(directory, places === undefined ? [SAFETENSORS] : shardsOf(places), places);
}

/** Returns the files that the index of a directory names; [] if there is no index. @throws ModelError */
export const readShardNames = (directory: string): string[] =>
  shardsOf(readModelJson(textsOf(directory), SAFETENSORS_INDEX, indexSchema)?.weight_map ?? {});

const shardsOf = (places: Readonly<Record<string, string>>): string[] =>
  [...new Set(Object.values(places))].toSorted();

const staysBelow = (file: string): boolean => !isAbsolute(file) && !normalize(file).startsWith('..');

/** @param places the file of each tensor; absent = wherever it is */
async function openFiles(
  directory: string,
  files: readonly string[],
  places?: Readonly<Record<string, string>>,
): Promise<Weights> {
  const missing = files.filter((file) => !staysBelow(file) || !existsSync(join(directory, file)));
  if (missing.length > 0) throw new ModelError(missingFiles(directory, missing, places !== undefined));
  const handles: FileHandle[] = [];
  try {
    const tensors = new Map<string, OpenTensor>();
    for (const file of files) {
      for (const tensor of await openFile(directory, file, handles)) {
        if ((places?.[tensor.name] ?? file) === file) tensors.set(tensor.name, tensor);
      }
    }
    const absent = Object.keys(places ?? {}).find((name) => !tensors.has(name));
    if (absent === undefined) return { tensors, handles };
    throw new ModelError(
      `${SAFETENSORS_INDEX} says that ${places![absent]} has the tensor ${absent}, but it has not`,
    );
  } catch (error) {
    await Promise.all(handles.map((handle) => handle.close()));
    throw error;
  }
}

async function openFile(directory: string, file: string, handles: FileHandle[]): Promise<OpenTensor[]> {
  let handle: FileHandle;
  try {
    handle = await open(join(directory, file));
  } catch (error) {
    throw new ModelError(`${file} cannot be read: ${errorMessage(error)}`);
  }
  handles.push(handle);
  const { size } = await handle.stat();
  const header = await readHeader(file, size, (position, length) =>
    readBytes(handle, file, position, length),
  );
  return header.map((tensor) => ({ ...tensor, file, handle }));
}

/** The array begins at the start of its buffer, so that it can be viewed as any type. */
async function readBytes(
  handle: FileHandle,
  file: string,
  position: number,
  length: number,
): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  for (let done = 0; done < length; ) {
    const { bytesRead } = await handle.read(bytes, done, length - done, position + done);
    if (bytesRead === 0) throw new ModelError(`${file} became shorter while it was read`);
    done += bytesRead;
  }
  return bytes;
}

function missingFiles(directory: string, missing: readonly string[], sharded: boolean): string {
  if (sharded) {
    return `${directory} lacks ${missing.length} of the shards that ${SAFETENSORS_INDEX} names: ${missing.slice(0, 3).join(', ')}; fetch them`;
  }
  const pickled = readdirSync(directory).find((file) => PICKLED_WEIGHTS.test(file));
  if (pickled === undefined) return `${directory} has no ${missing.join()}`;
  return `${directory} has its weights in ${pickled}, a pickle, which can run any code when it is read; take a revision with safetensors, or convert it where you trust it`;
}

/** Rows and columns that share a scale in float8 weights. */
function float8BlockSize(config: Readonly<Record<string, unknown>>): readonly number[] {
  const parsed = quantizationSchema.safeParse(config);
  if (!parsed.success) throw new ModelError('config.json: quantization_config is not understood');
  const quantization = parsed.data.quantization_config ?? {};
  const { quant_method: method = 'fp8', weight_block_size: block, format } = quantization;
  const isFloat8 = method === 'fp8' || (method === 'compressed-tensors' && format === 'float-quantized');
  if (isFloat8) return block ?? [128, 128];
  throw new ModelError(
    `config.json: quantization_config.quant_method is ${JSON.stringify(method)}; supported is "fp8", and "compressed-tensors" of the format "float-quantized"; take the model before it was quantized`,
  );
}

class SafetensorsCheckpoint implements Checkpoint {
  readonly source: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly tensors: ReadonlyMap<string, CheckpointTensor>;
  readonly #weights: Weights;
  readonly #scaleBlock: readonly number[];
  /** By the name of their weight. */
  readonly #scales = new Map<string, Scales>();

  constructor(
    directory: string,
    config: Readonly<Record<string, unknown>>,
    weights: Weights,
    scaleBlock: readonly number[],
  ) {
    this.source = directory;
    this.config = config;
    this.#weights = weights;
    this.#scaleBlock = scaleBlock;
    const listed = [...weights.tensors.values()].filter(({ name }) => !this.#isScale(name));
    this.tensors = new Map(
      listed.map(({ name, shape, dtype, bytes }) => [
        name,
        { name, shape, storedAs: dtype, storedBytes: bytes, blocks: null },
      ]),
    );
  }

  get files(): readonly CheckpointFile[] {
    return KEPT_FILES.map((name) => ({ name, copyOf: join(this.source, name) })).filter(({ copyOf }) =>
      existsSync(copyOf),
    );
  }

  async readRows(name: string, first: number, count: number): Promise<Float32Array> {
    const tensor = this.#weights.tensors.get(name);
    if (tensor === undefined) throw new ModelError(`${this.source} has no tensor ${name}`);
    const { dtype, file, handle, offset, bytes, shape } = tensor;
    const decode = DECODERS[dtype];
    if (decode === undefined)
      throw new ModelError(`${file}: tensor ${name} is ${dtype}, not a supported float`);
    const columns = columnsOf({ shape });
    const rows = shape.reduce((product, size) => product * size, 1) / columns;
    const rowBytes = bytes / rows;
    const values = decode(await readBytes(handle, file, offset + first * rowBytes, count * rowBytes));
    if (dtype === 'F8_E4M3') await this.#applyScales(name, values, first, columns);
    return values;
  }

  readBlocks(name: string): Promise<never> {
    return Promise.reject(new ModelError(`${this.source}: tensor ${name} is not quantized in blocks`));
  }

  async close(): Promise<void> {
    await Promise.all(this.#weights.handles.map((handle) => handle.close()));
  }

  #isScale(name: string): boolean {
    const owners = SCALES.flatMap((ending) => (name.endsWith(ending) ? name.slice(0, -ending.length) : []));
    return owners.some((owner) => this.#weights.tensors.get(owner)?.dtype === 'F8_E4M3');
  }

  async #applyScales(name: string, values: Float32Array, first: number, columns: number): Promise<void> {
    const scales = this.#scales.get(name) ?? (await this.#readScales(name, columns));
    this.#scales.set(name, scales);
    const across = Math.ceil(columns / scales.columns);
    for (let i = 0; i < values.length; i++) {
      const down = Math.floor((first + Math.floor(i / columns)) / scales.rows);
      values[i]! *= scales.values[down * across + Math.floor((i % columns) / scales.columns)]!;
    }
  }

  async #readScales(name: string, columns: number): Promise<Scales> {
    const stored = SCALES.flatMap((ending) => this.#weights.tensors.get(name + ending) ?? [])[0];
    if (stored === undefined) {
      throw new ModelError(`${this.source}: tensor ${name} is F8_E4M3 without ${name}${SCALES[0]}`);
    }
    const rows = this.#weights.tensors.get(name)!.bytes / columns;
    const [blockRows = 1, blockColumns = 1] = this.#scaleBlock;
    const blocks = [Math.ceil(rows / blockRows), Math.ceil(columns / blockColumns)];
    const shape = stored.shape.join();
    const values = await this.readRows(stored.name, 0, rowsOf(stored));
    if (shape === blocks.join()) return { rows: blockRows, columns: blockColumns, values };
    if (values.length === 1) return { rows, columns, values };
    if (shape === `${rows},1` || shape === `${rows}`) return { rows: 1, columns, values };
    const shapes = `[${stored.shape.join(', ')}], but blocks of [${this.#scaleBlock.join(', ')}] need [${blocks.join(', ')}]`;
    throw new ModelError(`${stored.file}: tensor ${stored.name} is ${shapes}`);
  }
}

/** Scales of a float8 weight, and how many of its rows and columns share one. */
interface Scales {
  readonly rows: number;
  readonly columns: number;
  readonly values: Float32Array;
}

import { copyFileSync, existsSync, mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ModelError } from '@continuo/origin/model/config/model-json.ts';
import { PROVENANCE_FILE, type Provenance } from '@continuo/origin/model/config/provenance.ts';
import { type Checkpoint, type CheckpointTensor, rowsOf } from './checkpoint/checkpoint.ts';
import { MatrixReader } from './checkpoint/matrix-reader.ts';
import { attentionsOf, type DecoderDesign, keepsCache } from './design/decoder-design.ts';
import type { Weight } from './design/weight-design.ts';
import { type DescribedDecoder, describeFamily } from './families/families.ts';
import { writeDecoder } from './graph/decoder-graph.ts';
import { GraphBuilder, type TensorJob } from './graph/graph-builder.ts';
import {
  type BlockSize,
  bitsOf,
  bytesOf,
  DEFAULT_BLOCK_SIZE,
  typeOf,
  type WeightPrecision,
} from './graph/linear.ts';
import { Quantizer } from './precision/quantize.ts';

const GRAPH_FILE = 'model.onnx';
const DATA_FILE = 'model.onnx.data';
const MIB = 2 ** 20;

/** Ends the name of the directory in which a build is in progress. */
export const PARTIAL_SUFFIX = '.partial';

export interface BuildOptions {
  readonly precision: WeightPrecision;
  /** Values that share a scale, at most; absent = 32. */
  readonly blockSize?: BlockSize | undefined;
  /** The model directory to create; must not exist. */
  readonly directory: string;
  /** Published name of the model, such as `Qwen/Qwen3-0.6B-Base`; absent = the source's last part. */
  readonly id?: string | undefined;
  /** What callers see as the origin of the weights; absent = the last part of the source's path. */
  readonly source?: string | undefined;
  /** Name of what is built from which files, by which the directory is known again. */
  readonly build?: string | undefined;
  /** Changes the files of the build before it gets its name. */
  readonly finish?: ((directory: string) => Promise<void>) | undefined;
  readonly onProgress?: ((progress: BuildProgress) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Bytes of the data file. */
export interface BuildProgress {
  readonly writtenBytes: number;
  readonly totalBytes: number;
}

export interface BuiltModel extends Provenance {
  readonly directory: string;
  /** What the checkpoint has and the decoder does not: a tensor, or a part such as `visual (9 tensors)`. */
  readonly unusedTensors: readonly string[];
  /** Stored types of blocks that were decoded and quantized again, such as `Q4_K`: a second rounding. */
  readonly requantized: readonly string[];
  readonly dataBytes: number;
}

/**
 * Builds a model directory from a checkpoint: graph, external weights, configuration and tokenizer. It is
 * written beside its place and renamed in the end, so an interrupted build leaves no model. Memory is bounded
 * by a few chunks of weights, and by the largest transposed tensor. The caller closes the checkpoint.
 * @throws ModelError with one line: an unsupported configuration, missing or damaged weights, no space
 */
export async function buildModel(checkpoint: Checkpoint, options: BuildOptions): Promise<BuiltModel> {
  const { directory, precision, blockSize = DEFAULT_BLOCK_SIZE } = options;
  if (existsSync(directory)) throw new ModelError(`${directory} exists already; remove it or name another`);
  const described = describeFamily(checkpoint.config, checkpoint.tensors);
  const { modelType, storedName } = described;
  const design = await withSeparateHead(described, checkpoint);
  const graph = new GraphBuilder(DATA_FILE);
  const weights = new MatrixReader(checkpoint, storedName);
  const type = typeOf(precision);
  writeDecoder({ graph, weights, quantizer: new Quantizer(), precision, blockSize, type }, design);
  weights.requireWholeTensors();
  const provenance: Provenance = {
    id: options.id ?? basename(checkpoint.source),
    source: options.source ?? basename(checkpoint.source),
    modelType,
    precision: servedPrecision(checkpoint, described, precision),
    parameters: weights.parameters,
    build: options.build,
  };
  const beside = `${directory}${PARTIAL_SUFFIX}`;
  mkdirSync(dirname(directory), { recursive: true });
  rmSync(beside, { recursive: true, force: true });
  mkdirSync(beside);
  try {
    requireSpace(beside, graph.dataBytes);
    await writeData(join(beside, DATA_FILE), graph, options);
    writeFileSync(join(beside, GRAPH_FILE), graph.encode(modelType));
    writeFiles(beside, checkpoint.files);
    writeJson(join(beside, 'config.json'), servedConfig(checkpoint.config, design));
    writeJson(join(beside, PROVENANCE_FILE), provenance);
    await options.finish?.(beside);
    await rename(beside, directory);
  } catch (error) {
    rmSync(beside, { recursive: true, force: true });
    throw error;
  }
  return {
    ...provenance,
    directory,
    unusedTensors: weights.unused,
    requantized: requantizedTypes(checkpoint, precision),
    dataBytes: graph.dataBytes,
  };
}

/** As in transformers and vLLM, a head with values of its own is not tied to the embedding. */
async function withSeparateHead(
  { design, storedName }: DescribedDecoder,
  checkpoint: Checkpoint,
): Promise<DecoderDesign> {
  const { head, embedding, separateHead } = design;
  const stored = ([part]: Weight) => checkpoint.tensors.get(storedName(part!.tensor));
  const [headTensor, embeddingTensor] = [stored(separateHead), stored(embedding)];
  if (head.weight === separateHead || headTensor === undefined || embeddingTensor === undefined)
    return design;
  if (await haveEqualRows(checkpoint, headTensor, embeddingTensor)) return design;
  return { ...design, head: { ...head, weight: separateHead } };
}

const COMPARED_ROWS = 256;

async function haveEqualRows(
  checkpoint: Checkpoint,
  a: CheckpointTensor,
  b: CheckpointTensor,
): Promise<boolean> {
  if (a.shape.join() !== b.shape.join()) return false;
  for (let first = 0; first < rowsOf(a); first += COMPARED_ROWS) {
    const count = Math.min(COMPARED_ROWS, rowsOf(a) - first);
    const left = await checkpoint.readRows(a.name, first, count);
    const right = await checkpoint.readRows(b.name, first, count);
    if (Buffer.compare(bytesOf(left), bytesOf(right)) !== 0) return false;
  }
  return true;
}

/**
 * Stored blocks of 4 bits are kept in 8-bit builds. If most values of the layers are in such blocks, the
 * result has 4 bits.
 */
function servedPrecision(
  { tensors }: Checkpoint,
  { design, storedName }: DescribedDecoder,
  precision: WeightPrecision,
): WeightPrecision {
  if (bitsOf(precision) !== 8) return precision;
  const outside = [...design.embedding, ...design.separateHead].map(({ tensor }) => storedName(tensor));
  let [four, eight] = [0, 0];
  for (const { name, shape, blocks } of tensors.values()) {
    if (shape.length < 2 || outside.includes(name)) continue;
    const values = shape.reduce((product, size) => product * size, 1);
    if (blocks?.bits === 4) four += values;
    else eight += values;
  }
  if (four <= eight) return precision;
  return precision === 'int8f32' ? 'int4f32' : 'int4';
}

const QUANTIZED_TYPE = /^(Q\d|IQ|MXFP)/;

function requantizedTypes({ tensors }: Checkpoint, precision: WeightPrecision): string[] {
  const bits = bitsOf(precision);
  if (bits === null) return [];
  const types = [...tensors.values()]
    .filter(
      ({ storedAs, blocks }) => QUANTIZED_TYPE.test(storedAs) && (blocks === null || blocks.bits > bits),
    )
    .map(({ storedAs }) => storedAs);
  return [...new Set(types)].toSorted();
}

function requireSpace(directory: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(directory);
  if (bavail * bsize >= bytes) return;
  const [needed, free] = [bytes, bavail * bsize].map((size) => Math.ceil(size / MIB));
  throw new ModelError(`${directory} needs ${needed} MiB of disk space, but ${free} MiB are free`);
}

async function writeData(
  path: string,
  { jobs, dataBytes: totalBytes }: GraphBuilder,
  { onProgress, signal }: BuildOptions,
): Promise<void> {
  await using file = await open(path, 'w');
  await file.truncate(totalBytes);
  let writtenBytes = 0;
  for (const job of jobs) {
    await fill(file, job, (bytes) => {
      signal?.throwIfAborted();
      writtenBytes += bytes;
      onProgress?.({ writtenBytes, totalBytes });
    });
  }
}

/** A chunk is written while the next one is read and converted. */
async function fill(file: FileHandle, job: TensorJob, onChunk: (bytes: number) => void): Promise<void> {
  const written = job.tensors.map(() => 0);
  let writing = Promise.resolve();
  try {
    await job.fill(async (index, bytes) => {
      await writing;
      onChunk(bytes.length);
      writing = writeAt(file, bytes, job.tensors[index]!.offset + written[index]!);
      // If the next chunk fails first, nothing else awaits this one.
      writing.catch(() => undefined);
      written[index]! += bytes.length;
    });
  } finally {
    await writing;
  }
  const short = job.tensors.findIndex(({ length }, index) => written[index] !== length);
  if (short < 0) return;
  const { name, length } = job.tensors[short]!;
  throw new ModelError(`tensor ${name} has ${written[short]} bytes instead of ${length}`);
}

async function writeAt(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    done += (await file.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
  }
}

function writeFiles(directory: string, files: Checkpoint['files']): void {
  for (const file of files) {
    const path = join(directory, file.name);
    if ('copyOf' in file) copyFileSync(file.copyOf, path);
    else writeFileSync(path, file.text);
  }
}

const writeJson = (path: string, value: unknown): void =>
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);

/**
 * Returns config.json of a built model. It is the published one, with the fields of a nested text_config
 * beside the others, and with the sizes that a published file may leave to its family.
 */
export function servedConfig(
  config: Readonly<Record<string, unknown>>,
  design: DecoderDesign,
): Record<string, unknown> {
  const { text_config: text, vision_config: _, ...others } = config;
  const { heads = 0, kvHeads = null, headSize = null } = attentionsOf(design)[0] ?? {};
  return {
    ...others,
    ...(typeof text === 'object' ? text : {}),
    vocab_size: design.vocabulary,
    hidden_size: design.hidden,
    // The layers of the graph's caches.
    num_hidden_layers: design.layers.filter(keepsCache).length,
    num_attention_heads: heads,
    num_key_value_heads: kvHeads,
    head_dim: headSize,
    ...(design.maxPositions < Infinity ? { max_position_embeddings: design.maxPositions } : {}),
  };
}

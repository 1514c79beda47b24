import { ModelError } from '@continuo/origin/model/config/model-json.ts';
import { ROW_SCALES } from '@continuo/origin/model/onnx/integer-products.ts';
import type { BlockFormat } from '../checkpoint/checkpoint.ts';
import { blockSizes, type Matrix, stack, times } from '../checkpoint/matrix.ts';
import type { WeightSource } from '../checkpoint/matrix-reader.ts';
import type { ProjectionDesign, Weight } from '../design/weight-design.ts';
import { MIN_BLOCK_SIZE, type Quantizer } from '../precision/quantize.ts';
import { type FloatType, floatsOf } from './float-type.ts';
import type { Emit, GraphBuilder } from './graph-builder.ts';

/**
 * fp32, fp16 and bf16: floats. int8, int4: blocks, or stored blocks of at most as many bits. Activations are
 * rounded to 8 bits, by blocks. int8f32, int4f32: the same weights, activations in float32. int8a8: one scale
 * for each row of weights and of activations, so that a CPU multiplies integers.
 */
export type WeightPrecision = 'fp32' | 'fp16' | 'bf16' | 'int8' | 'int8a8' | 'int4' | 'int8f32' | 'int4f32';

/** Type of the activations of a graph. */
export const typeOf = (precision: WeightPrecision): FloatType =>
  (({ fp16: 'float16', bf16: 'bfloat16' }) as Partial<Record<WeightPrecision, FloatType>>)[precision] ??
  'float32';

/** Bits of quantized weights; null = floats. */
export const bitsOf = (precision: WeightPrecision): 4 | 8 | null =>
  precision.startsWith('int8') ? 8 : precision.startsWith('int4') ? 4 : null;

/** Values that share a scale, in weights that are quantized here. */
export const BLOCK_SIZES = [128, 64, 32] as const;
export type BlockSize = (typeof BLOCK_SIZES)[number];
/** Larger blocks lose more, by models: docs/decisions/0028-prefill-runs.md has figures. */
export const DEFAULT_BLOCK_SIZE: BlockSize = 32;

/** What all parts of the graph writer need. */
export interface GraphContext {
  readonly graph: GraphBuilder;
  readonly weights: WeightSource;
  readonly quantizer: Quantizer;
  readonly precision: WeightPrecision;
  /** Upper limit: a matrix gets the largest size that divides its columns. */
  readonly blockSize: BlockSize;
  /** Type of activations and KV. */
  readonly type: FloatType;
}

const IN_EIGHT_BITS: Partial<Record<WeightPrecision, WeightPrecision>> = { int4: 'int8', int4f32: 'int8f32' };

/**
 * The same graph, whose next matrices have at least 8 bits. In 4 bits, attention, the output of delta
 * networks, embedding and head lose most per byte.
 */
export const inEightBits = (context: GraphContext): GraphContext => ({
  ...context,
  precision: IN_EIGHT_BITS[context.precision] ?? context.precision,
});

/** Values that are read and converted at once: 4 MiB of float32. */
const CHUNK_VALUES = 2 ** 20;

/**
 * Level 4: activations in 8 bits, with a scale for each row and block: rows do not influence each other. 1:
 * in float32.
 */
const accuracyLevel = (precision: WeightPrecision): number => (precision.endsWith('f32') ? 1 : 4);

/** Calls `visit` with consecutive ranges of rows. */
export async function eachChunk(
  { rows, columns }: Pick<Matrix, 'rows' | 'columns'>,
  visit: (first: number, count: number) => Promise<void>,
): Promise<void> {
  const chunk = Math.max(1, Math.floor(CHUNK_VALUES / columns));
  for (let first = 0; first < rows; first += chunk) await visit(first, Math.min(chunk, rows - first));
}

export const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView<ArrayBufferLike>): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

/** Bit patterns. Values of float32 are known to be finite. */
const INFINITIES = { float32: [], float16: [0x7c00, 0xfc00], bfloat16: [0x7f80, 0xff80] } as const;

/** Adds the matrix as floats of the activations' type, with `offset` added to each. */
export function floatTensor(
  { graph, type }: Pick<GraphContext, 'graph' | 'type'>,
  name: string,
  matrix: Matrix,
  dimensions: readonly number[],
  offset = 0,
): string {
  const [tensor] = graph.tensors([{ name, type, dimensions }], (emit) =>
    eachChunk(matrix, async (first, count) => {
      const values = await matrix.readRows(first, count);
      const shifted = offset === 0 ? values : values.map((value) => value + offset);
      await emit(0, bytesOf(finiteFloats(matrix.name, type, shifted)));
    }),
  );
  return tensor!;
}

/** @throws ModelError if a value is beyond the range of the type */
function finiteFloats(name: string, type: FloatType, values: Float32Array): ArrayBufferView {
  const floats = floatsOf(type, values);
  const infinities = INFINITIES[type];
  const at = Math.max(...infinities.map((infinity) => floats.indexOf(infinity)));
  if (at < 0) return floats;
  const advice = type === 'float16' ? 'bf16 for CUDA, or another precision' : 'another precision';
  throw new ModelError(`tensor ${name} has the value ${values[at]}, beyond ${type}; build ${advice}`);
}

/** Adds a vector of `length` values: factor · (value + offset). */
export function vectorTensor(
  context: GraphContext,
  weight: Weight,
  length: number,
  offset = 0,
  factor = 1,
): string {
  const matrix = times(context.weights.open(weight, 'vector', length, 1), factor);
  return floatTensor(context, nameOf(weight), matrix, [length], offset * factor);
}

/** Names of tensors in the graph: the weight's parts. */
export const nameOf = (weight: Weight): string =>
  weight
    .map(({ tensor, rows, matrix }) => {
      const chosen =
        rows === undefined ? '' : `[${rows.map(({ first, count }) => `${first}+${count}`).join()}]`;
      return `${tensor}${matrix === undefined ? '' : `.${matrix}`}${chosen.length > 60 ? `[${hash(chosen)}]` : chosen}`;
    })
    .join('|');

const hash = (text: string): string =>
  [...text].reduce((sum, character) => (Math.imul(sum, 31) + character.charCodeAt(0)) >>> 0, 7).toString(36);

/** Multiplies by the projections' weights, stacked: y = x · weightᵀ + bias, [.., sum of outputs]. */
export function writeLinear(
  context: GraphContext,
  input: string,
  projections: readonly ProjectionDesign[],
  inputs: number,
  outputs: readonly number[],
): string {
  const opened = projections.map(({ weight, factor = 1 }, index) =>
    times(context.weights.open(weight, 'matrix', outputs[index]!, inputs), factor),
  );
  const name = projections.map(({ weight }) => nameOf(weight)).join('|');
  const bias = writeBias(context, projections, outputs);
  const product = writeMatMul(context, input, name, opened.length === 1 ? opened[0]! : stack(opened), bias);
  const added = projections.flatMap((projection, index) =>
    addedProduct(context, input, projection, inputs, outputs[index]!),
  );
  if (added.length === 0) return product;
  const { graph } = context;
  const sum = added.length === 1 ? added[0]! : graph.node('Concat', added, { integers: { axis: -1 } });
  return graph.node('Add', [product, sum]);
}

/** None, or one product. Either all projections of a call have one or none. */
function addedProduct(
  context: GraphContext,
  input: string,
  { added, factor = 1 }: ProjectionDesign,
  inputs: number,
  outputs: number,
): string[] {
  if (added === undefined) return [];
  const { down, up, rank } = added;
  const narrow = writeLinear(context, input, [down], inputs, [rank]);
  return [writeLinear(context, narrow, [{ ...up, factor }], rank, [outputs])];
}

/** Reports whether the weights can be one matrix without loss: all in blocks of one format, or none. */
export function haveSameFormat(
  { weights }: GraphContext,
  projections: readonly ProjectionDesign[],
  inputs: number,
  outputs: readonly number[],
): boolean {
  const formats = projections.map(({ weight }, index) =>
    JSON.stringify(weights.open(weight, 'matrix', outputs[index]!, inputs).blocks),
  );
  return formats.every((format) => format === formats[0]);
}

function writeBias(
  context: GraphContext,
  projections: readonly ProjectionDesign[],
  outputs: readonly number[],
): string | null {
  if (projections.every(({ bias }) => bias === null)) return null;
  const parts = projections.map(({ bias, factor = 1 }, index) =>
    bias === null
      ? zeros(outputs[index]!)
      : times(context.weights.open(bias, 'vector', outputs[index]!, 1), factor),
  );
  const name = projections.map(({ bias }) => (bias === null ? '0' : nameOf(bias))).join('|');
  const length = outputs.reduce((sum, size) => sum + size, 0);
  return floatTensor(context, name, stack(parts), [length]);
}

const zeros = (rows: number): Matrix => ({
  name: 'zeros',
  rows,
  columns: 1,
  blocks: null,
  readRows: async (_, count) => new Float32Array(count),
});

/** Multiplies by one matrix that has been opened. */
export function writeMatMul(
  context: GraphContext,
  input: string,
  name: string,
  matrix: Matrix,
  bias: string | null,
): string {
  const { graph } = context;
  const format = blockFormat(context, matrix);
  if (format === null) {
    const weight = floatTensor(context, name, matrix, [matrix.rows, matrix.columns]);
    const product = graph.node('FusedMatMul', [input, weight], { microsoft: true, integers: { transB: 1 } });
    return bias === null ? product : graph.node('Add', [product, bias]);
  }
  const [levels, scales] = blockTensors(context, name, matrix, format);
  return graph.node('MatMulNBits', trimmed([input, levels, scales, '', '', bias ?? '']), {
    microsoft: true,
    integers: {
      K: matrix.columns,
      N: matrix.rows,
      bits: format.bits,
      block_size: format.blockSize,
      accuracy_level: accuracyLevel(context.precision),
    },
  });
}

/** Without absent inputs at the end. */
export const trimmed = (inputs: readonly string[]): string[] =>
  inputs.slice(0, inputs.findLastIndex((name) => name !== '') + 1);

/**
 * The format that a matrix is stored in; null = floats. Stored blocks are kept if they have at most the bits
 * wanted.
 */
export function blockFormat(
  { precision, blockSize }: Pick<GraphContext, 'precision' | 'blockSize'>,
  { blocks, columns }: Pick<Matrix, 'blocks' | 'columns'>,
): BlockFormat | null {
  const bits = bitsOf(precision);
  if (bits === null) return null;
  if (blocks !== null && blocks.bits <= bits) return blocks;
  const isRow = precision === 'int8a8' && columns % MIN_BLOCK_SIZE === 0;
  const most = isRow ? Math.max(...BLOCK_SIZES) : blockSize;
  const size = BLOCK_SIZES.find((each) => each <= most && columns % each === 0) ?? MIN_BLOCK_SIZE;
  return { bits, blockSize: size, isRow };
}

/** Adds levels [rows, blocks, bytes] and scales [rows, blocks], as MatMulNBits reads them. */
export function blockTensors(
  { graph, quantizer }: Pick<GraphContext, 'graph' | 'quantizer'>,
  name: string,
  matrix: Matrix,
  format: BlockFormat,
): readonly [levels: string, scales: string] {
  const { rows, columns, blocks } = matrix;
  const { levels, scales } = blockSizes(format, columns);
  const scalesName = `${name}${format.isRow ? ROW_SCALES : '/scales'}`;
  const fill = (emit: Emit) =>
    eachChunk(matrix, async (first, count) => {
      const read =
        blocks === format
          ? await blocks.read(first, count)
          : quantizer.quantize(await matrix.readRows(first, count), columns, format);
      await emit(0, read.levels);
      await emit(1, bytesOf(read.scales));
    });
  const [first, second] = graph.tensors(
    [
      { name: `${name}/levels`, type: 'uint8', dimensions: [rows, scales, levels / scales] },
      { name: scalesName, type: 'float32', dimensions: [rows, scales] },
    ],
    fill,
  );
  return [first!, second!];
}

/** Splits the last dimension. */
export function splitLast(graph: GraphBuilder, input: string, sizes: readonly number[]): string[] {
  const outputs = sizes.map(() => graph.newName('part'));
  graph.node('Split', [input, graph.integers(...sizes)], { outputs, integers: { axis: -1 } });
  return outputs;
}

import {
  encodeAttribute,
  encodeInitializer,
  encodeIntegerAttribute,
  encodeModel,
  encodeRawData,
  encodeTensor,
} from '@continuo/origin/model/onnx/onnx-encode.ts';
import { ElementType, GraphField, type GraphTensor } from '@continuo/origin/model/onnx/onnx-graph.ts';
import {
  encodeFloat,
  encodeInteger,
  encodeMessage,
  encodeString,
} from '@continuo/origin/model/onnx/wire-format.ts';
import { type FloatType, floatsOf } from './float-type.ts';

type WeightTypeName = keyof typeof ElementType;

const ELEMENT_BYTES: Readonly<Record<WeightTypeName, number>> = {
  float32: 4,
  float16: 2,
  bfloat16: 2,
  float8e4m3fn: 1,
  int8: 1,
  uint8: 1,
  bool: 1,
  int32: 4,
  int64: 8,
};

/** A tensor of the file of external data. */
interface ExternalTensor {
  readonly name: string;
  readonly offset: number;
  readonly length: number;
}

/** Receives the next bytes of one of the tensors that a job fills. */
export type Emit = (tensor: number, bytes: Uint8Array) => Promise<void>;

/** Fills tensors of the data file, from the first byte of each to the last, when the file is written. */
export interface TensorJob {
  readonly tensors: readonly ExternalTensor[];
  readonly fill: (emit: Emit) => Promise<void>;
}

interface TensorSpec {
  readonly name: string;
  readonly type: WeightTypeName;
  readonly dimensions: readonly number[];
}

interface NodeOptions {
  readonly microsoft?: boolean;
  /** Names of outputs; absent = one with a generated name. Empty names are unused. */
  readonly outputs?: readonly string[];
  readonly integers?: Readonly<Record<string, number>>;
  readonly integerLists?: Readonly<Record<string, readonly number[]>>;
  readonly floats?: Readonly<Record<string, number>>;
  readonly strings?: Readonly<Record<string, string>>;
  /** Graphs that `branch` has encoded. */
  readonly branches?: Readonly<Record<string, Uint8Array>>;
}

const MICROSOFT = 'com.microsoft';
/** A multiple of every alignment that ONNX Runtime's kernels use. */
const ALIGNMENT = 64;

/** Collects the nodes of one graph and the tensors of its external data, read when written. */
export class GraphBuilder {
  readonly #dataFile: string;
  readonly #parts: Uint8Array[] = [];
  /** Nodes of the graph, or of the branch that is being written. */
  #nodes: Uint8Array[] = [];
  readonly #constants = new Map<string, Uint8Array>();
  readonly #read = new Set<string>();
  readonly #jobs: TensorJob[] = [];
  #dataBytes = 0;
  #names = 0;

  /** @param dataFile name of the file of external data, beside the graph */
  constructor(dataFile: string) {
    this.#dataFile = dataFile;
  }

  /** What fills the data file, in the order of its offsets. */
  get jobs(): readonly TensorJob[] {
    return this.#jobs;
  }

  get dataBytes(): number {
    return this.#dataBytes;
  }

  input(tensor: GraphTensor): void {
    this.#parts.push(encodeTensor(GraphField.input, tensor));
  }

  output(tensor: GraphTensor): void {
    this.#parts.push(encodeTensor(GraphField.output, tensor));
  }

  has(constant: string): boolean {
    return this.#constants.has(constant);
  }

  /** Adds a node; returns its first output. Empty input names are absent inputs. */
  node(operator: string, inputs: readonly string[], options: NodeOptions = {}): string {
    const outputs = options.outputs ?? [this.newName(operator)];
    for (const name of inputs) this.#read.add(name);
    this.#nodes.push(
      encodeMessage(GraphField.node, [
        ...inputs.map((name) => encodeString(1, name)),
        ...outputs.map((name) => encodeString(2, name)),
        encodeString(3, this.newName(operator)),
        encodeString(4, operator),
        ...encodeAttributes(options),
        ...(options.microsoft ? [encodeString(7, MICROSOFT)] : []),
      ]),
    );
    return outputs[0]!;
  }

  /**
   * Encodes a graph without inputs whose nodes `write` adds. They may read every tensor that the graph has so
   * far.
   * @param write returns the name of the one output
   */
  branch(name: string, type: WeightTypeName, dimensions: GraphTensor['dimensions'], write: () => string) {
    const outer = this.#nodes;
    this.#nodes = [];
    const output = { name: write(), elementType: ElementType[type], dimensions };
    const parts = [...this.#nodes, encodeString(2, name), encodeTensor(GraphField.output, output)];
    this.#nodes = outer;
    return Buffer.concat(parts);
  }

  newName(base: string): string {
    return `${base}/${this.#names++}`;
  }

  /** A small constant inside the graph, once for each name. */
  constant(
    name: string,
    type: WeightTypeName,
    dimensions: readonly number[],
    values: readonly number[],
  ): string {
    if (this.#constants.has(name)) return name;
    const bytes = new Uint8Array(arrayOf(type, values).buffer);
    this.#initializer(name, type, dimensions, [encodeRawData([bytes])]);
    return name;
  }

  /** Indices or a shape, int64 [length]. */
  integers(...values: readonly number[]): string {
    return this.constant(`integers/${values.join(',')}`, 'int64', [values.length], values);
  }

  /** An int64 scalar. */
  integer(value: number): string {
    return this.constant(`integer/${value}`, 'int64', [], [value]);
  }

  /** A scalar of the given type. */
  scalar(value: number, type: FloatType): string {
    return this.constant(`${type}/${value}`, type, [], [value]);
  }

  /** Multiplies by a factor; 1 is no node. */
  times(input: string, factor: number, type: FloatType): string {
    return factor === 1 ? input : this.node('Mul', [input, this.scalar(factor, type)]);
  }

  /** Tensors of the data file that are filled together, unless the first one exists. Returns their names. */
  tensors(specs: readonly TensorSpec[], fill: TensorJob['fill']): string[] {
    const names = specs.map(({ name }) => name);
    if (this.#constants.has(names[0]!)) return names;
    const tensors = specs.map((spec) => {
      const length = spec.dimensions.reduce((product, size) => product * size, ELEMENT_BYTES[spec.type]);
      const offset = Math.ceil(this.#dataBytes / ALIGNMENT) * ALIGNMENT;
      this.#dataBytes = offset + length;
      const tensor = { name: spec.name, offset, length };
      this.#externalInitializer(spec, tensor);
      return tensor;
    });
    this.#jobs.push({ tensors, fill });
    return names;
  }

  /** The bytes of the tensor `of` under another name, with another shape. */
  alias(spec: TensorSpec, of: string): string {
    const original = this.#jobs.flatMap(({ tensors }) => tensors).find(({ name }) => name === of)!;
    if (!this.#constants.has(spec.name)) this.#externalInitializer(spec, original);
    return spec.name;
  }

  /** Encodes the file of the graph. ONNX Runtime warns of constants that no node reads, so they stay out. */
  encode(name: string): Uint8Array {
    const constants = [...this.#constants].filter(([constant]) => this.#read.has(constant));
    const parts = [...this.#parts, ...constants.map(([, encoded]) => encoded), ...this.#nodes];
    return encodeModel(name, parts, [MICROSOFT]);
  }

  #externalInitializer({ name, type, dimensions }: TensorSpec, { offset, length }: ExternalTensor): void {
    const entries = { location: this.#dataFile, offset: `${offset}`, length: `${length}` };
    this.#initializer(name, type, dimensions, [
      ...Object.entries(entries).map(([key, value]) =>
        encodeMessage(13, [encodeString(1, key), encodeString(2, value)]),
      ),
      encodeInteger(14, 1),
    ]);
  }

  #initializer(
    name: string,
    type: WeightTypeName,
    dimensions: readonly number[],
    data: readonly Uint8Array[],
  ): void {
    const elementType = ElementType[type];
    this.#constants.set(name, encodeInitializer({ name, elementType, dimensions }, data));
  }
}

function encodeAttributes({
  integers = {},
  integerLists = {},
  floats = {},
  strings = {},
  branches = {},
}: NodeOptions): Uint8Array[] {
  return [
    ...Object.entries(integers).map(([name, value]) => encodeIntegerAttribute(name, value)),
    ...Object.entries(integerLists).map(([name, values]) =>
      encodeAttribute(name, 'integers', Buffer.concat(values.map((value) => encodeInteger(8, value)))),
    ),
    ...Object.entries(floats).map(([name, value]) => encodeAttribute(name, 'float', encodeFloat(2, value))),
    ...Object.entries(strings).map(([name, value]) =>
      encodeAttribute(name, 'string', encodeString(4, value)),
    ),
    ...Object.entries(branches).map(([name, graph]) =>
      encodeAttribute(name, 'graph', encodeMessage(6, [graph])),
    ),
  ];
}

function arrayOf(type: WeightTypeName, values: readonly number[]) {
  if (type === 'float32') return Float32Array.from(values);
  if (type === 'float16' || type === 'bfloat16') return floatsOf(type, Float32Array.from(values));
  if (type === 'int64') return BigInt64Array.from(values, BigInt);
  if (type === 'int32') return Int32Array.from(values);
  return Uint8Array.from(values);
}

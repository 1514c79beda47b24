import { encodeModel, encodeTensor } from '../../model/onnx/onnx-encode.ts';
import { ElementType, GraphField, type GraphTensor } from '../../model/onnx/onnx-graph.ts';
import { encodeFloat, encodeInteger, encodeMessage, encodeString } from '../../model/onnx/wire-format.ts';
import { toFloat16 } from '../precision/float16.ts';

/** Types of weights that the graph writer uses; values of TensorProto.DataType. */
export const WeightType = { ...ElementType, uint8: 2 } as const;
export type WeightTypeName = keyof typeof WeightType;

const ELEMENT_BYTES: Readonly<Record<WeightTypeName, number>> = {
  float32: 4,
  float16: 2,
  uint8: 1,
  bool: 1,
  int32: 4,
  int64: 8,
};

/** Yields the bytes of a tensor in order. */
export type TensorBytes = () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** A tensor of the file of external data. */
export interface ExternalTensor {
  readonly name: string;
  readonly offset: number;
  readonly length: number;
  readonly bytes: TensorBytes;
}

export interface NodeOptions {
  readonly microsoft?: boolean;
  /** Names of outputs; absent = one with a generated name. Empty names are unused. */
  readonly outputs?: readonly string[];
  readonly integers?: Readonly<Record<string, number>>;
  readonly floats?: Readonly<Record<string, number>>;
  readonly lists?: Readonly<Record<string, readonly number[]>>;
}

const MICROSOFT = 'com.microsoft';
/** A multiple of every alignment that ONNX Runtime's kernels use. */
const ALIGNMENT = 64;
const AttributeType = { float: 1, integer: 2, integers: 7 } as const;

/** Collects the nodes of one graph and the tensors of its external data, which are read only when they are written. */
export class GraphBuilder {
  readonly #dataFile: string;
  readonly #parts: Uint8Array[] = [];
  readonly #constants = new Set<string>();
  readonly #external: ExternalTensor[] = [];
  #dataBytes = 0;
  #names = 0;

  /** @param dataFile name of the file of external data, beside the graph */
  constructor(dataFile: string) {
    this.#dataFile = dataFile;
  }

  /** Tensors of the data file in the order of their offsets. */
  get external(): readonly ExternalTensor[] {
    return this.#external;
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
    this.#parts.push(
      encodeMessage(GraphField.node, [
        ...inputs.map((name) => encodeString(1, name)),
        ...outputs.map((name) => encodeString(2, name)),
        encodeString(3, `${operator}/${this.#parts.length}`),
        encodeString(4, operator),
        ...encodeAttributes(options),
        ...(options.microsoft ? [encodeString(7, MICROSOFT)] : []),
      ]),
    );
    return outputs[0]!;
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
    this.#initializer(name, type, dimensions, [encodeMessage(9, [bytes])]);
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
  scalar(value: number, type: 'float32' | 'float16'): string {
    return this.constant(`${type}/${value}`, type, [], [value]);
  }

  /** A tensor of the data file. */
  tensor(name: string, type: WeightTypeName, dimensions: readonly number[], bytes: TensorBytes): string {
    if (this.#constants.has(name)) return name;
    const length = dimensions.reduce((product, size) => product * size, 1) * ELEMENT_BYTES[type];
    const offset = Math.ceil(this.#dataBytes / ALIGNMENT) * ALIGNMENT;
    this.#dataBytes = offset + length;
    this.#external.push({ name, offset, length, bytes });
    this.#externalInitializer(name, type, dimensions, offset, length);
    return name;
  }

  /** The same bytes of the data file under another name, with another type or shape. */
  alias(name: string, of: string, type: WeightTypeName, dimensions: readonly number[]): string {
    const original = this.#external.find((tensor) => tensor.name === of)!;
    if (!this.#constants.has(name)) {
      this.#externalInitializer(name, type, dimensions, original.offset, original.length);
    }
    return name;
  }

  /** Encodes the file of the graph. */
  encode(name: string): Uint8Array {
    return encodeModel(name, this.#parts, [MICROSOFT]);
  }

  #externalInitializer(
    name: string,
    type: WeightTypeName,
    dimensions: readonly number[],
    offset: number,
    length: number,
  ): void {
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
    this.#constants.add(name);
    this.#parts.push(
      encodeMessage(GraphField.initializer, [
        ...dimensions.map((size) => encodeInteger(1, size)),
        encodeInteger(2, WeightType[type]),
        encodeString(8, name),
        ...data,
      ]),
    );
  }
}

function encodeAttributes({ integers = {}, floats = {}, lists = {} }: NodeOptions): Uint8Array[] {
  const attribute = (name: string, type: number, values: readonly Uint8Array[]) =>
    encodeMessage(5, [encodeString(1, name), ...values, encodeInteger(20, type)]);
  return [
    ...Object.entries(integers).map(([name, value]) =>
      attribute(name, AttributeType.integer, [encodeInteger(3, value)]),
    ),
    ...Object.entries(floats).map(([name, value]) =>
      attribute(name, AttributeType.float, [encodeFloat(2, value)]),
    ),
    ...Object.entries(lists).map(([name, values]) =>
      attribute(
        name,
        AttributeType.integers,
        values.map((value) => encodeInteger(8, value)),
      ),
    ),
  ];
}

function arrayOf(type: WeightTypeName, values: readonly number[]) {
  if (type === 'float32') return Float32Array.from(values);
  if (type === 'float16') return toFloat16(Float32Array.from(values));
  if (type === 'int64') return BigInt64Array.from(values, BigInt);
  if (type === 'int32') return Int32Array.from(values);
  return Uint8Array.from(values);
}

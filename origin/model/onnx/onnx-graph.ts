import { readInteger, readIntegers, readString, type WireField, wireFields } from './wire-format.ts';

/** Reads the interface and operators of an ONNX file, without its weights. */

/** Values of onnx.proto's TensorProto.DataType that the code names. */
export const ElementType = {
  float32: 1,
  uint8: 2,
  int8: 3,
  int32: 6,
  int64: 7,
  bool: 9,
  float16: 10,
  bfloat16: 16,
  float8e4m3fn: 17,
} as const;

/** Bits of one element by TensorProto.DataType, for all types of weights. 4-bit elements are packed. */
export const ELEMENT_BITS: ReadonlyMap<number, number> = new Map([
  ...[2, 3, 9, 17, 18, 19, 20].map((type) => [type, 8] as const),
  ...[4, 5, 10, 16].map((type) => [type, 16] as const),
  ...[1, 6, 12].map((type) => [type, 32] as const),
  ...[7, 11, 13].map((type) => [type, 64] as const),
  ...[21, 22].map((type) => [type, 4] as const),
]);

export interface GraphTensor {
  readonly name: string;
  readonly elementType: number;
  /** Each a number, a symbol, or null if the file has neither. */
  readonly dimensions: readonly (number | string | null)[];
}

export interface GraphNode {
  readonly operator: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** Integer attributes only. */
  readonly integers: ReadonlyMap<string, number>;
  /** Value of a Constant that is one int64; else null. */
  readonly constant: number | null;
  /** Graphs inside the node: branches of an If, body of a Loop. */
  readonly branches: readonly OnnxGraph[];
}

/** Location of data in another file. */
interface ExternalData {
  /** Relative to the model file's folder. */
  readonly file: string;
  readonly offset: number;
  /** Bytes; null = given by the dimensions. */
  readonly length: number | null;
}

export interface GraphInitializer {
  readonly name: string;
  readonly elementType: number;
  readonly dimensions: readonly number[];
  /** Null if the data is in the model file. */
  readonly external: ExternalData | null;
}

export interface OnnxGraph {
  /** Without initializers, which old files also list as inputs. */
  readonly inputs: readonly GraphTensor[];
  readonly outputs: readonly GraphTensor[];
  readonly nodes: readonly GraphNode[];
  readonly initializers: ReadonlyMap<string, GraphInitializer>;
  /** Initializers and Constant nodes of one int64, by name. */
  readonly scalars: ReadonlyMap<string, number>;
}

export const ModelField = { graph: 7 } as const;
export const GraphField = { node: 1, initializer: 5, input: 11, output: 12, valueInfo: 13 } as const;

/** Reads a ModelProto. @throws Error that completes "model.onnx …" */
export function readGraph(model: Uint8Array): OnnxGraph {
  return readGraphMessage(graphMessage(model));
}

/** Yields the graph and those inside its nodes, at any depth. */
export function* withBranches(graph: OnnxGraph): Generator<OnnxGraph> {
  yield graph;
  for (const { branches } of graph.nodes) for (const branch of branches) yield* withBranches(branch);
}

function readGraphMessage(graph: Uint8Array): OnnxGraph {
  const inputs: GraphTensor[] = [];
  const outputs: GraphTensor[] = [];
  const nodes: GraphNode[] = [];
  const initializers = new Map<string, GraphInitializer>();
  const scalars = new Map<string, number>();
  for (const field of wireFields(graph)) {
    if (field.field === GraphField.node) {
      const node = readNode(field);
      nodes.push(node);
      if (node.constant !== null) scalars.set(node.outputs[0] ?? '', node.constant);
    } else if (field.field === GraphField.input) inputs.push(readTensor(field));
    else if (field.field === GraphField.output) outputs.push(readTensor(field));
    else if (field.field === GraphField.initializer) {
      const initializer = readInitializer(field);
      initializers.set(initializer.name, initializer);
      const value = readScalar(field);
      if (value !== null) scalars.set(initializer.name, value);
    }
  }
  const withoutInitializers = inputs.filter(({ name }) => !initializers.has(name));
  return { inputs: withoutInitializers, outputs, nodes, initializers, scalars };
}

export function graphMessage(model: Uint8Array): Uint8Array {
  for (const field of wireFields(model)) if (field.field === ModelField.graph) return field.bytes;
  throw new Error('holds no graph');
}

export function readNode(field: WireField): GraphNode {
  const inputs: string[] = [];
  const outputs: string[] = [];
  const integers = new Map<string, number>();
  const branches: OnnxGraph[] = [];
  let operator = '';
  let constant: number | null = null;
  for (const part of wireFields(field.bytes)) {
    if (part.field === 1) inputs.push(readString(part));
    else if (part.field === 2) outputs.push(readString(part));
    else if (part.field === 4) operator = readString(part);
    else if (part.field === 5) constant = readAttribute(part, integers, branches) ?? constant;
  }
  return { operator, inputs, outputs, integers, branches, constant };
}

/** Returns the attribute's value if it is a tensor of one int64. */
function readAttribute(
  field: WireField,
  integers: Map<string, number>,
  branches: OnnxGraph[],
): number | null {
  let name = '';
  let scalar: number | null = null;
  let value: number | undefined;
  for (const part of wireFields(field.bytes)) {
    if (part.field === 1) name = readString(part);
    else if (part.field === 3) value = readInteger(part);
    else if (part.field === 5) scalar = readScalar(part);
    else if (part.field === 6) branches.push(readGraphMessage(part.bytes));
  }
  if (value !== undefined) integers.set(name, value);
  return scalar;
}

/** Reads a TensorProto {data_type 2, int64_data 7, raw_data 9} of one int64; null if it is another tensor. */
function readScalar(field: WireField): number | null {
  let elementType = 0;
  let values: readonly number[] = [];
  for (const part of wireFields(field.bytes)) {
    if (part.field === 2) elementType = readInteger(part);
    else if (part.field === 7 && part.bytes.length <= 10) values = [...values, ...readIntegers(part)];
    else if (part.field === 7) return null;
    else if (part.field === 9 && part.bytes.length === 8)
      values = [Number(new BigInt64Array(new Uint8Array(part.bytes).buffer)[0])];
  }
  return elementType === ElementType.int64 && values.length === 1 ? values[0]! : null;
}

/** ValueInfoProto {name 1, type 2 {tensor 1 {elem_type 1, shape 2 {dim 1 {value 1, param 2}}}}}. */
export function readTensor(field: WireField): GraphTensor {
  let name = '';
  let elementType = 0;
  const dimensions: (number | string | null)[] = [];
  for (const part of wireFields(field.bytes)) {
    if (part.field === 1) name = readString(part);
    else if (part.field === 2) {
      for (const tensor of nested(part, 1)) {
        for (const { field: number, value } of wireFields(tensor.bytes))
          if (number === 1) elementType = Number(value);
        for (const shape of nested(tensor, 2)) {
          for (const dimension of nested(shape, 1)) dimensions.push(readDimension(dimension));
        }
      }
    }
  }
  return { name, elementType, dimensions };
}

function readDimension(field: WireField): number | string | null {
  for (const part of wireFields(field.bytes)) {
    if (part.field === 1) return readInteger(part);
    if (part.field === 2) return readString(part);
  }
  return null;
}

/** TensorProto {dims 1, data_type 2, name 8, external_data 13}. */
export function readInitializer(field: WireField): GraphInitializer {
  let name = '';
  let elementType = 0;
  const entries = new Map<string, string>();
  const dimensions: number[] = [];
  for (const part of wireFields(field.bytes)) {
    if (part.field === 1) dimensions.push(...readIntegers(part));
    else if (part.field === 2) elementType = readInteger(part);
    else if (part.field === 8) name = readString(part);
    else if (part.field === 13) {
      const [key, value] = [...wireFields(part.bytes)].map(readString);
      if (key !== undefined && value !== undefined) entries.set(key, value);
    }
  }
  return { name, elementType, dimensions, external: externalData(entries) };
}

function externalData(entries: ReadonlyMap<string, string>): ExternalData | null {
  const file = entries.get('location');
  if (file === undefined) return null;
  const length = entries.get('length');
  return {
    file,
    offset: Number(entries.get('offset') ?? 0),
    length: length === undefined ? null : Number(length),
  };
}

function* nested(field: WireField, number: number): Generator<WireField> {
  for (const part of wireFields(field.bytes)) if (part.field === number) yield part;
}

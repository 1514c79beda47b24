import { readInteger, readIntegers, readString, type WireField, wireFields } from './wire-format.ts';

/** What the runner must know of an ONNX file: its interface and its operators, never its weights. */

/** Element types of onnx.proto's TensorProto.DataType that a decoder's interface can have. */
export const ElementType = { float32: 1, int32: 6, int64: 7, bool: 9, float16: 10 } as const;

export interface GraphTensor {
  readonly name: string;
  readonly elementType: number;
  /** A number, a symbol, or null where the file gives neither. */
  readonly dimensions: readonly (number | string | null)[];
}

export interface GraphNode {
  readonly operator: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** Integer attributes only. */
  readonly integers: ReadonlyMap<string, number>;
}

export interface GraphInitializer {
  readonly name: string;
  readonly elementType: number;
  readonly dimensions: readonly number[];
  /** File beside the model that holds the data; null when the data is in the model file. */
  readonly externalFile: string | null;
}

export interface OnnxGraph {
  /** Initializers that old files also list as inputs are left out. */
  readonly inputs: readonly GraphTensor[];
  readonly outputs: readonly GraphTensor[];
  readonly nodes: readonly GraphNode[];
  readonly initializers: ReadonlyMap<string, GraphInitializer>;
}

export const ModelField = { graph: 7 } as const;
export const GraphField = { node: 1, initializer: 5, input: 11, output: 12 } as const;

/** Reads a ModelProto. Throws an Error that completes "model.onnx …". */
export function readGraph(model: Uint8Array): OnnxGraph {
  const inputs: GraphTensor[] = [];
  const outputs: GraphTensor[] = [];
  const nodes: GraphNode[] = [];
  const initializers = new Map<string, GraphInitializer>();
  for (const field of wireFields(graphMessage(model))) {
    if (field.field === GraphField.node) nodes.push(readNode(field));
    else if (field.field === GraphField.input) inputs.push(readTensor(field));
    else if (field.field === GraphField.output) outputs.push(readTensor(field));
    else if (field.field === GraphField.initializer) {
      const initializer = readInitializer(field);
      initializers.set(initializer.name, initializer);
    }
  }
  return { inputs: inputs.filter(({ name }) => !initializers.has(name)), outputs, nodes, initializers };
}

export function graphMessage(model: Uint8Array): Uint8Array {
  for (const field of wireFields(model)) if (field.field === ModelField.graph) return field.bytes;
  throw new Error('holds no graph');
}

export function readNode(field: WireField): GraphNode {
  const inputs: string[] = [];
  const outputs: string[] = [];
  const integers = new Map<string, number>();
  let operator = '';
  for (const part of wireFields(field.bytes)) {
    if (part.field === 1) inputs.push(readString(part));
    else if (part.field === 2) outputs.push(readString(part));
    else if (part.field === 4) operator = readString(part);
    else if (part.field === 5) readAttribute(part, integers);
  }
  return { operator, inputs, outputs, integers };
}

function readAttribute(field: WireField, integers: Map<string, number>): void {
  let name = '';
  let value: number | undefined;
  for (const part of wireFields(field.bytes)) {
    if (part.field === 1) name = readString(part);
    else if (part.field === 3) value = readInteger(part);
  }
  if (value !== undefined) integers.set(name, value);
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

function readInitializer(field: WireField): GraphInitializer {
  let name = '';
  let elementType = 0;
  let externalFile: string | null = null;
  const dimensions: number[] = [];
  for (const part of wireFields(field.bytes)) {
    if (part.field === 1) dimensions.push(...readIntegers(part));
    else if (part.field === 2) elementType = readInteger(part);
    else if (part.field === 8) name = readString(part);
    else if (part.field === 13) {
      const [key, value] = [...wireFields(part.bytes)].map(readString);
      if (key === 'location' && value !== undefined) externalFile = value;
    }
  }
  return { name, elementType, dimensions, externalFile };
}

function* nested(field: WireField, number: number): Generator<WireField> {
  for (const part of wireFields(field.bytes)) if (part.field === number) yield part;
}

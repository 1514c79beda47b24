import {
  ElementType,
  GraphField,
  type GraphInitializer,
  type GraphTensor,
  ModelField,
} from './onnx-graph.ts';
import { encodeInteger, encodeMessage, encodeString, joined } from './wire-format.ts';

/** Encodes ONNX models and their parts, by the field numbers of onnx.proto. */

/** ONNX IR and operator set of the graphs made here. */
const IR = { field: 1, version: 8 };
const OPERATOR_SET = { field: 8, versionField: 2, version: 18 };
const GRAPH_NAME = 2;

/** Encodes a file (ModelProto) from the encoded parts of one graph. `domains` are those beside ONNX's own. */
export function encodeModel(
  name: string,
  graph: readonly Uint8Array[],
  domains: readonly string[] = [],
): Uint8Array {
  return joined([
    encodeInteger(IR.field, IR.version),
    encodeMessage(ModelField.graph, [...graph, encodeString(GRAPH_NAME, name)]),
    encodeMessage(OPERATOR_SET.field, [encodeInteger(OPERATOR_SET.versionField, OPERATOR_SET.version)]),
    ...domains.map((domain) =>
      encodeMessage(OPERATOR_SET.field, [
        encodeString(1, domain),
        encodeInteger(OPERATOR_SET.versionField, 1),
      ]),
    ),
  ]);
}

/** Encodes a node, named after its first output. @param domain of the operator, if it is not ONNX's own */
export function encodeNode(
  operator: string,
  inputs: readonly string[],
  output: string | readonly string[],
  integers: Readonly<Record<string, number>> = {},
  domain = '',
): Uint8Array {
  const outputs = typeof output === 'string' ? [output] : output;
  return encodeMessage(GraphField.node, [
    ...inputs.map((name) => encodeString(1, name)),
    ...outputs.map((name) => encodeString(2, name)),
    encodeString(3, outputs[0]!),
    encodeString(4, operator),
    ...Object.entries(integers).map(([name, value]) => encodeIntegerAttribute(name, value)),
    ...(domain === '' ? [] : [encodeString(7, domain)]),
  ]);
}

/** Values of AttributeProto.AttributeType. */
const ATTRIBUTES = { float: 1, integer: 2, string: 3, graph: 5, integers: 7 } as const;

/** Encodes an attribute of a node. @param value its encoded field */
export const encodeAttribute = (name: string, type: keyof typeof ATTRIBUTES, value: Uint8Array): Uint8Array =>
  encodeMessage(5, [encodeString(1, name), value, encodeInteger(20, ATTRIBUTES[type])]);

export const encodeIntegerAttribute = (name: string, value: number): Uint8Array =>
  encodeAttribute(name, 'integer', encodeInteger(3, value));

/** Encodes a constant of a graph. @param data its encoded fields */
export const encodeInitializer = (
  { name, elementType, dimensions }: Pick<GraphInitializer, 'name' | 'elementType' | 'dimensions'>,
  data: readonly Uint8Array[],
): Uint8Array =>
  encodeMessage(GraphField.initializer, [
    ...dimensions.map((size) => encodeInteger(1, size)),
    encodeInteger(2, elementType),
    encodeString(8, name),
    ...data,
  ]);

/** Encodes plain bytes of a constant. */
export const encodeRawData = (bytes: readonly Uint8Array[]): Uint8Array => encodeMessage(9, bytes);

/** Encodes an initializer of int32 or int64 values. */
export function encodeIntegers(
  name: string,
  elementType: number,
  dimensions: readonly number[],
  values: readonly number[],
): Uint8Array {
  const data =
    elementType === ElementType.int32 ? Int32Array.from(values) : BigInt64Array.from(values, BigInt);
  const bytes = [encodeRawData([new Uint8Array(data.buffer)])];
  return encodeInitializer({ name, elementType, dimensions }, bytes);
}

/** Encodes an input or output of a graph, depending on `field`. */
export function encodeTensor(field: number, { name, elementType, dimensions }: GraphTensor): Uint8Array {
  const shape = dimensions.map((dimension) => {
    if (dimension === null) return encodeMessage(1, []);
    return encodeMessage(1, [
      typeof dimension === 'number' ? encodeInteger(1, dimension) : encodeString(2, dimension),
    ]);
  });
  const tensor = encodeMessage(1, [encodeInteger(1, elementType), encodeMessage(2, shape)]);
  return encodeMessage(field, [encodeString(1, name), encodeMessage(2, [tensor])]);
}

import { GraphField, type GraphTensor } from './onnx-graph.ts';
import { encodeInteger, encodeMessage, encodeString } from './wire-format.ts';

/** Parts of an ONNX file (onnx.proto's NodeProto and ValueInfoProto). */

/** A node of a graph, named after its output. */
export function encodeNode(
  operator: string,
  inputs: readonly string[],
  output: string,
  integers: Readonly<Record<string, number>> = {},
): Uint8Array {
  const INTEGER_ATTRIBUTE = 2;
  return encodeMessage(GraphField.node, [
    ...inputs.map((name) => encodeString(1, name)),
    encodeString(2, output),
    encodeString(3, output),
    encodeString(4, operator),
    ...Object.entries(integers).map(([name, value]) =>
      encodeMessage(5, [
        encodeString(1, name),
        encodeInteger(3, value),
        encodeInteger(20, INTEGER_ATTRIBUTE),
      ]),
    ),
  ]);
}

/** An input or output of a graph: `field` says which. */
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

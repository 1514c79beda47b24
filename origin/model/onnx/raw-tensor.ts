import { GraphField } from './onnx-graph.ts';
import {
  encodeInteger,
  encodeMessage,
  encodeString,
  readInteger,
  readIntegers,
  readString,
  type WireField,
  wireFields,
} from './wire-format.ts';

/** A constant of a graph (TensorProto) whose data are plain bytes in the file. */
export interface RawTensor {
  readonly field: WireField;
  readonly name: string;
  readonly elementType: number;
  readonly dimensions: readonly number[];
  readonly bytes: Uint8Array;
}

const RAW_DATA = 9;
const NAME = 8;

/** Returns null if the data are stored otherwise, and for scalars. */
export function readRawTensor(field: WireField): RawTensor | null {
  const dimensions: number[] = [];
  let name = '';
  let elementType = 0;
  let bytes: Uint8Array | null = null;
  for (const part of wireFields(field.bytes)) {
    if (part.field === 1) dimensions.push(...readIntegers(part));
    else if (part.field === 2) elementType = readInteger(part);
    else if (part.field === NAME) name = readString(part);
    else if (part.field === RAW_DATA) bytes = part.bytes;
  }
  return bytes === null || dimensions.length === 0 ? null : { field, name, elementType, dimensions, bytes };
}

/** Concatenates tensors along their first dimension; the others are equal. */
export function joinRows(name: string, tensors: readonly RawTensor[]): Uint8Array {
  const { dimensions, elementType } = tensors[0]!;
  const rows = tensors.reduce((sum, tensor) => sum + tensor.dimensions[0]!, 0);
  return encodeMessage(GraphField.initializer, [
    ...[rows, ...dimensions.slice(1)].map((size) => encodeInteger(1, size)),
    encodeInteger(2, elementType),
    encodeString(NAME, name),
    encodeMessage(
      RAW_DATA,
      tensors.map(({ bytes }) => bytes),
    ),
  ]);
}

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { GraphField, readInitializer } from '../../origin/model/onnx/onnx-graph.ts';
import { graphFields } from '../../origin/model/onnx/onnx-patch.ts';
import { wireFields } from '../../origin/model/onnx/wire-format.ts';

/** A constant of the graph; `bytes` is its little-endian content. */
export interface StoredTensor {
  readonly dims: readonly number[];
  readonly type: number;
  readonly bytes: Uint8Array;
}

/** Number of a field of TensorProto. */
const RAW_DATA = 9;

/** Every constant tensor of the graph by name, also those whose bytes are in files beside it. */
export function readTensors(modelPath: string): ReadonlyMap<string, StoredTensor> {
  const read = new Map<string, Uint8Array>();
  const stored = (file: string): Uint8Array => {
    const bytes = read.get(file) ?? readFileSync(path.join(path.dirname(modelPath), file));
    read.set(file, bytes);
    return bytes;
  };
  const constants = graphFields(readFileSync(modelPath)).filter(
    ({ field }) => field === GraphField.initializer,
  );
  const tensors = constants.map((constant) => {
    const { name, elementType, dimensions, external } = readInitializer(constant);
    const bytes =
      external === null
        ? [...wireFields(constant.bytes)].find(({ field }) => field === RAW_DATA)!.bytes
        : stored(external.file).subarray(external.offset, external.offset + external.length!);
    return [name, { dims: dimensions, type: elementType, bytes }] as const;
  });
  return new Map(tensors);
}

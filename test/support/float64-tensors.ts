import { readFileSync } from 'node:fs';
import path from 'node:path';

/** Reads the constant tensors of an ONNX file. Supports only the parts of protobuf that they use. */

interface Field {
  readonly number: number;
  readonly varint: number;
  readonly bytes: Uint8Array;
}

/** A constant of the graph; `bytes` is its little-endian content. */
export interface StoredTensor {
  readonly dims: readonly number[];
  readonly type: number;
  readonly bytes: Uint8Array;
}

const EMPTY = new Uint8Array();

/** Numbers of fields, from onnx.proto. */
const MODEL_GRAPH = 7;
const GRAPH_INITIALIZER = 5;
const TENSOR = { dims: 1, type: 2, name: 8, raw: 9, external: 13 } as const;
const ENTRY = { key: 1, value: 2 } as const;

/** Reads a varint. The fields read here are below 2^53 and not negative. */
function readVarint(bytes: Uint8Array, start: number): { value: number; end: number } {
  let value = 0;
  let scale = 1;
  for (let at = start; ; at++) {
    const byte = bytes[at];
    if (byte === undefined) throw new Error('the file ends inside a number');
    value += (byte & 127) * scale;
    scale *= 128;
    if (byte < 128) return { value, end: at + 1 };
  }
}

function* fields(bytes: Uint8Array): Generator<Field> {
  for (let at = 0; at < bytes.length; ) {
    const key = readVarint(bytes, at);
    const number = Math.floor(key.value / 8);
    const wire = key.value % 8;
    at = key.end;
    if (wire === 0) {
      const { value, end } = readVarint(bytes, at);
      yield { number, varint: value, bytes: EMPTY };
      at = end;
    } else {
      const length = wire === 2 ? readVarint(bytes, at) : { value: wire === 1 ? 8 : 4, end: at };
      const end = length.end + length.value;
      yield { number, varint: 0, bytes: bytes.subarray(length.end, end) };
      at = end;
    }
  }
}

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

function readEntry(bytes: Uint8Array): [key: string, value: string] {
  const parts = new Map([...fields(bytes)].map((field) => [field.number, text(field.bytes)]));
  return [parts.get(ENTRY.key)!, parts.get(ENTRY.value)!];
}

/** @param files reads a file of external weights by its name */
function readTensor(
  bytes: Uint8Array,
  files: (name: string) => Uint8Array,
): [name: string, tensor: StoredTensor] {
  const dims: number[] = [];
  let type = 0;
  let name = '';
  let raw: Uint8Array = EMPTY;
  const external = new Map<string, string>();
  for (const field of fields(bytes)) {
    if (field.number === TENSOR.type) type = field.varint;
    else if (field.number === TENSOR.name) name = text(field.bytes);
    else if (field.number === TENSOR.raw) raw = field.bytes;
    else if (field.number === TENSOR.external) external.set(...readEntry(field.bytes));
    else if (field.number === TENSOR.dims) {
      // Writers may pack repeated numbers into one field or repeat the field.
      if (field.bytes.length === 0) dims.push(field.varint);
      for (let at = 0; at < field.bytes.length; ) {
        const { value, end } = readVarint(field.bytes, at);
        dims.push(value);
        at = end;
      }
    }
  }
  const location = external.get('location');
  if (location !== undefined) {
    const offset = Number(external.get('offset'));
    raw = files(location).subarray(offset, offset + Number(external.get('length')));
  }
  return [name, { dims, type, bytes: raw }];
}

/** Every constant tensor of the graph by name, also those whose bytes are in files beside it. */
export function readTensors(modelPath: string): ReadonlyMap<string, StoredTensor> {
  const tensors = new Map<string, StoredTensor>();
  const read = new Map<string, Uint8Array>();
  const files = (name: string): Uint8Array => {
    const bytes = read.get(name) ?? readFileSync(path.join(path.dirname(modelPath), name));
    read.set(name, bytes);
    return bytes;
  };
  for (const outer of fields(readFileSync(modelPath))) {
    if (outer.number !== MODEL_GRAPH) continue;
    for (const inner of fields(outer.bytes)) {
      if (inner.number === GRAPH_INITIALIZER) tensors.set(...readTensor(inner.bytes, files));
    }
  }
  return tensors;
}

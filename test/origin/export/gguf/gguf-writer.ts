import { Buffer } from 'node:buffer';

/** A value of the metadata with the number of its type in the format. */
export type Value =
  | { readonly u32: number }
  | { readonly u16: number }
  | { readonly i32: number }
  | { readonly f32: number }
  | { readonly bool: boolean }
  | { readonly text: string }
  | { readonly texts: readonly string[] }
  | { readonly f32s: readonly number[] }
  | { readonly i32s: readonly number[] };

/** What the header says of a tensor. */
export interface TensorInfo {
  readonly name: string;
  /** Number of the type. */
  readonly type: number;
  /** Innermost dimension first, as the file has it. */
  readonly dimensions: readonly number[];
  /** Overrides the offset that the writer computes. */
  readonly offset?: number;
}

export interface Tensor extends TensorInfo {
  readonly data: Uint8Array;
}

const ALIGNMENT = 32;

/** Returns the bytes that a tensor takes in a file. */
export const padded = (size: number) => Math.ceil(size / ALIGNMENT) * ALIGNMENT;

const numbers = (bytes: number, write: (buffer: Buffer) => void): Buffer => {
  const buffer = Buffer.alloc(bytes);
  write(buffer);
  return buffer;
};
const u32 = (value: number) => numbers(4, (buffer) => buffer.writeUInt32LE(value));
const i32 = (value: number) => numbers(4, (buffer) => buffer.writeInt32LE(value));
const f32 = (value: number) => numbers(4, (buffer) => buffer.writeFloatLE(value));
const u64 = (value: number) => numbers(8, (buffer) => buffer.writeBigUInt64LE(BigInt(value)));
const text = (value: string) => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);
const list = (type: number, values: readonly Buffer[]) => [u32(9), u32(type), u64(values.length), ...values];

function encode(value: Value): Buffer[] {
  if ('u32' in value) return [u32(4), u32(value.u32)];
  if ('u16' in value) return [u32(2), numbers(2, (buffer) => buffer.writeUInt16LE(value.u16))];
  if ('i32' in value) return [u32(5), i32(value.i32)];
  if ('f32' in value) return [u32(6), f32(value.f32)];
  if ('bool' in value) return [u32(7), Buffer.of(value.bool ? 1 : 0)];
  if ('text' in value) return [u32(8), text(value.text)];
  if ('texts' in value) return list(8, value.texts.map(text));
  if ('f32s' in value) return list(6, value.f32s.map(f32));
  return list(5, value.i32s.map(i32));
}

const withPadding = (block: Uint8Array) => [block, Buffer.alloc(padded(block.length) - block.length)];

/** Returns everything before the tensors of a GGUF file of version 3. `bytes` is the size of a tensor. */
export function ggufHeader<T extends TensorInfo>(
  metadata: Readonly<Record<string, Value>>,
  tensors: readonly T[],
  bytes: (tensor: T) => number,
): Buffer {
  const keys = Object.entries(metadata);
  let next = 0;
  const infos = tensors.map((tensor) => {
    const { name, type, dimensions, offset = next } = tensor;
    next += padded(bytes(tensor));
    return Buffer.concat([
      text(name),
      u32(dimensions.length),
      ...dimensions.map(u64),
      u32(type),
      u64(offset),
    ]);
  });
  const header = Buffer.concat([
    Buffer.from('GGUF'),
    u32(3),
    u64(tensors.length),
    u64(keys.length),
    ...keys.flatMap(([key, value]) => [text(key), ...encode(value)]),
    ...infos,
  ]);
  return Buffer.concat(withPadding(header));
}

/** Writes a GGUF file of version 3. */
export function writeGguf(metadata: Readonly<Record<string, Value>>, tensors: readonly Tensor[]): Buffer {
  const header = ggufHeader(metadata, tensors, ({ data }) => data.length);
  return Buffer.concat([header, ...tensors.flatMap(({ data }) => withPadding(data))]);
}

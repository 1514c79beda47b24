/** The Protocol Buffers wire format: enough to read and rewrite an ONNX file without decoding its weights. */

export interface WireField {
  readonly field: number;
  /** The whole field with its tag. */
  readonly run: Uint8Array;
  /** The value of a varint; 0n for other wire types. */
  readonly value: bigint;
  /** Payload of a length-delimited or fixed-width field; empty for a varint. */
  readonly bytes: Uint8Array;
}

/** Yields the fields of a message in file order. @throws Error if the message is truncated or not protobuf */
export function* wireFields(message: Uint8Array): Generator<WireField> {
  let position = 0;
  while (position < message.length) {
    const start = position;
    const tag = readVarint(message, position);
    let value = 0n;
    let payload = tag.end;
    switch (Number(tag.value & 7n)) {
      case 0: {
        const varint = readVarint(message, tag.end);
        value = varint.value;
        payload = position = varint.end;
        break;
      }
      case 1:
        position = tag.end + 8;
        break;
      case 2: {
        const length = readVarint(message, tag.end);
        payload = length.end;
        position = length.end + Number(length.value);
        break;
      }
      case 5:
        position = tag.end + 4;
        break;
      default:
        throw new Error('is not a protobuf message');
    }
    if (position > message.length) throw new Error('is truncated');
    const bytes = message.subarray(payload, position);
    yield { field: Number(tag.value >> 3n), run: message.subarray(start, position), value, bytes };
  }
}

function readVarint(bytes: Uint8Array, start: number): { value: bigint; end: number } {
  let value = 0n;
  let shift = 0n;
  for (let position = start; ; position++) {
    const byte = bytes[position];
    if (byte === undefined) throw new Error('is truncated');
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return { value: BigInt.asUintN(64, value), end: position + 1 };
    shift += 7n;
    if (shift > 63n) throw new Error('is not a protobuf message');
  }
}

const decoder = new TextDecoder();
const encoder = new TextEncoder();

export function readString(field: WireField): string {
  return decoder.decode(field.bytes);
}

/** Reads a varint as a signed 64-bit integer. */
export function readInteger(field: WireField): number {
  return Number(BigInt.asIntN(64, field.value));
}

/** Reads one element of a repeated integer, or all of them if they are packed into one field. */
export function readIntegers(field: WireField): number[] {
  if (field.bytes.length === 0) return [readInteger(field)];
  const values: number[] = [];
  for (let position = 0; position < field.bytes.length; ) {
    const { value, end } = readVarint(field.bytes, position);
    values.push(Number(BigInt.asIntN(64, value)));
    position = end;
  }
  return values;
}

function encodeVarint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}

export function encodeInteger(field: number, value: number): Uint8Array {
  return joined([encodeVarint(field * 8), encodeVarint(value)]);
}

/** Joins bytes. */
export function joined(runs: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(runs.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const run of runs) {
    whole.set(run, at);
    at += run.length;
  }
  return whole;
}

/** Encodes a single-precision number. */
export function encodeFloat(field: number, value: number): Uint8Array {
  return joined([encodeVarint(field * 8 + 5), new Uint8Array(Float32Array.of(value).buffer)]);
}

export function encodeString(field: number, value: string): Uint8Array {
  return encodeMessage(field, [encoder.encode(value)]);
}

/** Encodes a length-delimited field whose payload is the concatenation of `runs`. */
export function encodeMessage(field: number, runs: readonly Uint8Array[]): Uint8Array {
  return joined(messageRuns(field, runs));
}

/** Like `encodeMessage`, but unjoined, so that a whole model is copied only once. */
export function messageRuns(field: number, runs: readonly Uint8Array[]): Uint8Array[] {
  const length = runs.reduce((sum, run) => sum + run.length, 0);
  return [encodeVarint(field * 8 + 2), encodeVarint(length), ...runs];
}

/**
 * Protocol Buffers' wire format, writing side only (https://protobuf.dev/programming-guides/encoding/).
 * Deliberately separate from the reader in origin/model: a mistake common to both would go unnoticed.
 */

const text = new TextEncoder();

function varint(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}

/** A message under construction: a list of byte runs, so that nesting never copies weights. */
export class ProtoMessage {
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  #append(part: Uint8Array): void {
    this.#parts.push(part);
    this.#length += part.length;
  }

  integer(field: number, value: number): this {
    this.#append(varint(BigInt(field) << 3n));
    this.#append(varint(BigInt(value)));
    return this;
  }

  float(field: number, value: number): this {
    this.#append(varint((BigInt(field) << 3n) | 5n));
    this.#append(new Uint8Array(Float32Array.of(value).buffer));
    return this;
  }

  bytes(field: number, value: Uint8Array): this {
    this.#append(varint((BigInt(field) << 3n) | 2n));
    this.#append(varint(BigInt(value.length)));
    this.#append(value);
    return this;
  }

  string(field: number, value: string): this {
    return this.bytes(field, text.encode(value));
  }

  message(field: number, value: ProtoMessage): this {
    this.#append(varint((BigInt(field) << 3n) | 2n));
    this.#append(varint(BigInt(value.#length)));
    for (const part of value.#parts) this.#append(part);
    return this;
  }

  /** The encoded bytes in order; joined they are the message. */
  get parts(): readonly Uint8Array[] {
    return this.#parts;
  }
}

import { FLOAT16_VALUES } from '@continuo/shared/float16.ts';

/**
 * Stored floating-point types to float32. All are little-endian, as the machines are that ONNX Runtime
 * supports.
 */

/** F8_E4M3: 4 bits of exponent, 3 of fraction, no infinity; the largest pattern is NaN. */
const FLOAT8_VALUES = Float32Array.from({ length: 256 }, (_, byte) => {
  const sign = byte & 0x80 ? -1 : 1;
  const exponent = (byte >> 3) & 15;
  const fraction = byte & 7;
  if (exponent === 15 && fraction === 7) return Number.NaN;
  if (exponent === 0) return sign * fraction * 2 ** -9;
  return sign * (1 + fraction / 8) * 2 ** (exponent - 7);
});

type Decode = (bytes: Uint8Array) => Float32Array;

/** Decoders by safetensors dtype. The bytes begin at a multiple of 8 in their buffer. */
export const DECODERS: Readonly<Record<string, Decode>> = {
  F64: ({ buffer, byteOffset, length }) =>
    Float32Array.from(new Float64Array(buffer, byteOffset, length / 8)),
  F32: ({ buffer, byteOffset, length }) => new Float32Array(buffer, byteOffset, length / 4),
  F16: ({ buffer, byteOffset, length }) =>
    lookUp(new Uint16Array(buffer, byteOffset, length / 2), FLOAT16_VALUES),
  BF16: ({ buffer, byteOffset, length }) => {
    const halves = new Uint16Array(buffer, byteOffset, length / 2);
    const words = new Uint32Array(halves.length);
    for (let i = 0; i < halves.length; i++) words[i] = halves[i]! << 16;
    return new Float32Array(words.buffer);
  },
  F8_E4M3: (bytes) => lookUp(bytes, FLOAT8_VALUES),
};

function lookUp(codes: Uint8Array | Uint16Array, values: Float32Array): Float32Array {
  const result = new Float32Array(codes.length);
  for (let i = 0; i < codes.length; i++) result[i] = values[codes[i]!]!;
  return result;
}

import { type Code, END, signed, unsigned } from './wasm-encode.ts';

/** The instructions that the kernel uses, by the specification's names and codes. Operands come first, on the stack. */

const VOID = 0x40;

export const get = (local: number): Code => [0x20, ...unsigned(local)];
export const set = (local: number, value: Code): Code => [...value, 0x21, ...unsigned(local)];

/** The body again and again while the condition, a number left by it, is not zero. */
export const loopWhile = (body: readonly Code[], condition: Code): Code => [
  0x03,
  VOID,
  ...body.flat(),
  ...condition,
  0x0d,
  0,
  END,
];

/** The body where the condition, a number, is not zero. */
export const when = (condition: Code, body: readonly Code[]): Code => [
  ...condition,
  0x04,
  VOID,
  ...body.flat(),
  END,
];

const memory =
  (operation: readonly number[], alignment: number) =>
  (address: Code, offset = 0): Code => [...address, ...operation, alignment, ...unsigned(offset)];
const unary =
  (...operation: readonly number[]) =>
  (a: Code): Code => [...a, ...operation];
const binary =
  (...operation: readonly number[]) =>
  (a: Code, b: Code): Code => [...a, ...b, ...operation];

export const i32 = {
  load: memory([0x28], 2),
  const: (value: number): Code => [0x41, ...signed(value)],
  add: binary(0x6a),
  sub: binary(0x6b),
  and: binary(0x71),
  shiftLeft: binary(0x74),
  bitCount: unary(0x69),
  /** Of unsigned numbers, 1 or 0. */
  lessThan: binary(0x49),
};

export const f32 = {
  const: (value: number): Code => [0x43, ...bytesOf(Float32Array.of(value))],
  mul: binary(0x94),
  /** 1 or 0. */
  atLeast: binary(0x60),
  load: memory([0x2a], 2),
  store: (address: Code, value: Code, offset: number): Code => [
    ...address,
    ...value,
    0x38,
    2,
    ...unsigned(offset),
  ],
};

const simd = (operation: number): Code => [0xfd, ...unsigned(operation)];
const unaryVector = (operation: number) => unary(...simd(operation));
const binaryVector = (operation: number) => binary(...simd(operation));
const shift =
  (operation: number) =>
  (vector: Code, bits: number): Code => [...vector, ...i32.const(bits), ...simd(operation)];

/** All 128 bits, whatever they stand for. */
export const v128 = {
  load: memory(simd(0x00), 2),
  /** Half as many, then zeros. */
  loadHalf: memory(simd(0x5d), 2),
  store: (address: Code, value: Code, offset = 0): Code => [
    ...address,
    ...value,
    ...simd(0x0b),
    2,
    ...unsigned(offset),
  ],
  and: binaryVector(0x4e),
};

export const f32x4 = {
  const: (value: number): Code => [...simd(0x0c), ...bytesOf(new Float32Array(4).fill(value))],
  splat: unaryVector(0x13),
  lane: (lane: number, vector: Code): Code => [...vector, ...simd(0x1f), lane],
  /** One number from each address, then zeros. */
  loadPair: (first: Code, second: Code): Code => [
    ...second,
    ...first,
    ...simd(0x5c),
    2,
    0,
    ...simd(0x56),
    2,
    0,
    1,
  ],
  /** The lanes in this order. */
  permute: (lanes: readonly number[], vector: Code): Code => {
    const bytes = lanes.flatMap((lane) => [0, 1, 2, 3].map((byte) => 4 * lane + byte));
    return [...vector, ...vector, ...simd(0x0d), ...bytes];
  },
  /** Comparisons set all bits of a lane, or none. */
  lessThan: binaryVector(0x43),
  atLeast: binaryVector(0x46),
  add: binaryVector(0xe4),
  sub: binaryVector(0xe5),
  mul: binaryVector(0xe6),
  /** The larger of two, the first where they do not compare. */
  max: binaryVector(0xeb),
};

export const i32x4 = {
  const: (...lanes: readonly [number, number, number, number]): Code => [
    ...simd(0x0c),
    ...bytesOf(Int32Array.from(lanes)),
  ],
  splat: unaryVector(0x11),
  lane: (lane: number, vector: Code): Code => [...vector, ...simd(0x1b), lane],
  add: binaryVector(0xae),
  shiftLeft: shift(0xab),
  /** 1 where no lane is zero. */
  allTrue: unaryVector(0xa3),
  /** A bit for each lane, the lowest first: whether it is negative. */
  signs: unaryVector(0xa4),
  /** Both lanes of a float64x2 without their fractions, then zeros. */
  truncated: unaryVector(0xfc),
};

export const i64x2 = {
  /** The first two of four unsigned 32-bit lanes. */
  widened: unaryVector(0xc9),
  shiftLeft: shift(0xcb),
  sub: binaryVector(0xd1),
};

export const f64x2 = {
  splat: unaryVector(0x14),
  const: (value: number): Code => [...simd(0x0c), ...bytesOf(new Float64Array(2).fill(value))],
  /** One number from each address. */
  loadPair: (first: Code, second: Code, offset: number): Code => [
    ...second,
    ...v128.loadHalf(first, offset),
    ...simd(0x57),
    3,
    ...unsigned(offset),
    1,
  ],
  /** The first two of four float32. */
  promoted: unaryVector(0x5f),
  /** The first two of four signed 32-bit lanes. */
  ofIntegers: unaryVector(0xfe),
  atLeast: binaryVector(0x4c),
  add: binaryVector(0xf0),
  sub: binaryVector(0xf1),
  mul: binaryVector(0xf2),
};

export const i8x16 = {
  /** The first operand's bytes at the second's indices. */
  swizzle: binaryVector(0x0e),
};

/** Little-endian, as WebAssembly is and every machine it runs on here. */
function bytesOf(values: Float32Array | Float64Array | Int32Array): number[] {
  return [...new Uint8Array(values.buffer)];
}

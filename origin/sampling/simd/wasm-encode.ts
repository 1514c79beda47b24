/** The parts of a WebAssembly module that the reductions need, by the binary format of the specification. */

/** Instructions, or any other encoded part. */
export type Code = readonly number[];

export const I32 = 0x7f;
export const F32 = 0x7d;
export const V128 = 0x7b;

export interface WasmFunction {
  readonly name: string;
  readonly parameters: readonly number[];
  readonly results: readonly number[];
  /** Types of the locals behind the parameters. */
  readonly locals: readonly number[];
  readonly body: Code;
}

/** A module that exports these functions and imports the memory `memory.of`. */
export function encodeModule(functions: readonly WasmFunction[]): Uint8Array<ArrayBuffer> {
  const MAGIC_AND_VERSION = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
  const types = functions.map(({ parameters, results }) => [
    0x60,
    ...list(parameters.map((type) => [type])),
    ...list(results.map((type) => [type])),
  ]);
  const memory = [...name('memory'), ...name('of'), 2, 0, 1];
  const bodies = functions.map(({ locals, body }) => {
    const code = [...list(locals.map((type) => [1, type])), ...body, END];
    return [...unsigned(code.length), ...code];
  });
  return Uint8Array.from([
    ...MAGIC_AND_VERSION,
    ...section(1, list(types)),
    ...section(2, list([memory])),
    ...section(3, list(functions.map((_, index) => unsigned(index)))),
    ...section(7, list(functions.map((each, index) => [...name(each.name), 0, ...unsigned(index)]))),
    ...section(10, list(bodies)),
  ]);
}

const END = 0x0b;
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

export const i32 = {
  const: (value: number): Code => [0x41, ...signed(value)],
  add: (a: Code, b: Code): Code => [...a, ...b, 0x6a],
  sub: (a: Code, b: Code): Code => [...a, ...b, 0x6b],
  /** The low half, `offset` bytes behind the address. */
  store16: (address: Code, offset: number, value: Code): Code => [
    ...address,
    ...value,
    0x3b,
    1,
    ...unsigned(offset),
  ],
};

export const f32 = {
  const: (value: number): Code => [0x43, ...bytesOf(Float32Array.of(value))],
  mul: (a: Code, b: Code): Code => [...a, ...b, 0x94],
  /** 1 or 0. */
  atLeast: (a: Code, b: Code): Code => [...a, ...b, 0x60],
  load: (address: Code): Code => [...address, 0x2a, 2, 0],
  store: (address: Code, value: Code): Code => [...address, ...value, 0x38, 2, 0],
};

const simd = (operation: number, ...immediate: number[]): Code => [
  0xfd,
  ...unsigned(operation),
  ...immediate,
];
const binary =
  (operation: number) =>
  (a: Code, b: Code): Code => [...a, ...b, ...simd(operation)];

export const f32x4 = {
  load: (address: Code, offset: number): Code => [...address, ...simd(0x00, 2, ...unsigned(offset))],
  store: (address: Code, value: Code): Code => [...address, ...value, ...simd(0x0b, 2, 0)],
  const: (value: number): Code => simd(0x0c, ...bytesOf(new Float32Array(4).fill(value))),
  splat: (value: Code): Code => [...value, ...simd(0x13)],
  lane: (lane: number, vector: Code): Code => [...vector, ...simd(0x1f, lane)],
  /** The lanes in this order. */
  permute: (lanes: readonly number[], vector: Code): Code => {
    const bytes = lanes.flatMap((lane) => [0, 1, 2, 3].map((byte) => 4 * lane + byte));
    return [...vector, ...vector, ...simd(0x0d, ...bytes)];
  },
  /** Comparisons set all bits of a lane, or none. */
  lessThan: binary(0x43),
  atLeast: binary(0x46),
  add: binary(0xe4),
  sub: binary(0xe5),
  mul: binary(0xe6),
  /** The larger of two, the first where they do not compare. */
  max: binary(0xeb),
};

export const i32x4 = {
  const: (value: number): Code => simd(0x0c, ...bytesOf(new Int32Array(4).fill(value))),
  and: binary(0x4e),
  add: binary(0xae),
  shiftLeft: (vector: Code, bits: number): Code => [...vector, ...i32.const(bits), ...simd(0xab)],
  /** 1 where no lane is zero. */
  allTrue: (vector: Code): Code => [...vector, ...simd(0xa3)],
};

/** Lanes of twice as many bits, cut to what these can hold: first those of one vector, then of another. */
export const i16x8 = { narrow: binary(0x85) };
export const i8x16 = {
  narrow: binary(0x65),
  /** A bit for each lane, 1 where it is negative. */
  signs: (vector: Code): Code => [...vector, ...simd(0x64)],
};

/** LEB128. */
function unsigned(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...unsigned(Math.floor(value / 128))];
}

function signed(value: number): number[] {
  const low = value & 127;
  const rest = value >> 7;
  const isLast = rest === ((low & 64) === 0 ? 0 : -1);
  return isLast ? [low] : [low | 128, ...signed(rest)];
}

function list(items: readonly Code[]): number[] {
  return [...unsigned(items.length), ...items.flat()];
}

function section(id: number, content: Code): number[] {
  return [id, ...unsigned(content.length), ...content];
}

function name(text: string): number[] {
  return list(Array.from(new TextEncoder().encode(text), (byte) => [byte]));
}

/** Little-endian, as WebAssembly is and every machine it runs on here. */
function bytesOf(values: Float32Array | Int32Array): number[] {
  return [...new Uint8Array(values.buffer)];
}

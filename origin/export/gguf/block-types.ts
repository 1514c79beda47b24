import { FLOAT16_VALUES } from '@continuo/shared/float16.ts';
import { DECODERS } from '../checkpoint/float-formats.ts';

/**
 * The tensor types of GGUF as ggml's block structures define them. A row is a sequence of blocks of equal
 * size, so a row can be read without those before it.
 */
export interface BlockType {
  readonly name: string;
  readonly elements: number;
  readonly bytes: number;
  /** Writes the elements of a block that begins at `at` to `out` from `to`; null for plain floats. */
  readonly decode: ((bytes: Uint8Array, at: number, out: Float32Array, to: number) => void) | null;
  /** Set if every value is an integer times the scale of its group. */
  readonly integers: IntegerBlocks | null;
}

/** The integers of a block. They have at most `bits` bits; a group of `groupSize` elements has one scale. */
interface IntegerBlocks {
  readonly bits: 4 | 8;
  readonly groupSize: number;
  /** Writes the signed integers of a block to `out` from `to`. */
  levels(bytes: Uint8Array, at: number, out: Int8Array, to: number): void;
  scale(bytes: Uint8Array, at: number, group: number): number;
  /** Writes the levels of a block two in a byte (see BlockRows) to `out` from `to`; null with 8 bits. */
  readonly pack: ((bytes: Uint8Array, at: number, out: Uint8Array, to: number) => void) | null;
}

const BLOCK = 32;
const SUPER_BLOCK = 256;

const float16 = (bytes: Uint8Array, at: number): number =>
  FLOAT16_VALUES[bytes[at]! | (bytes[at + 1]! << 8)]!;

/** One element per block, decoded as safetensors' types of the same names. */
const plain = (name: string, bytes: number): BlockType => ({
  name,
  elements: 1,
  bytes,
  integers: null,
  decode: null,
});

/** Where a block of 32 keeps its codes: 16 bytes of 4 bits, low halves first; fifth bits if any. */
interface CodePlace {
  readonly codes: number;
  readonly fifth?: number;
}

/** Writes the value of each code to `out` from `to`. */
function readCodes(
  bytes: Uint8Array,
  at: number,
  { codes, fifth }: CodePlace,
  values: Int8Array,
  out: Int8Array,
  to: number,
): void {
  const fifthBits = (from: number) =>
    fifth === undefined ? 0 : (bytes[at + fifth + from]! | (bytes[at + fifth + from + 1]! << 8)) << 4;
  const [low, high] = [fifthBits(0), fifthBits(2)];
  for (let index = 0; index < 16; index += 1) {
    const pair = bytes[at + codes + index]!;
    out[to + index] = values[(pair & 15) | ((low >> index) & 16)]!;
    out[to + index + 16] = values[(pair >> 4) | ((high >> index) & 16)]!;
  }
}

/** A type whose values are integers times scales. */
function integerType(
  name: string,
  sizes: { elements: number; bytes: number },
  integers: IntegerBlocks,
): BlockType {
  const levels = new Int8Array(sizes.elements);
  return {
    name,
    ...sizes,
    integers,
    decode(bytes, at, out, to) {
      integers.levels(bytes, at, levels, 0);
      for (let group = 0; group * integers.groupSize < sizes.elements; group += 1) {
        const scale = integers.scale(bytes, at, group);
        const end = (group + 1) * integers.groupSize;
        for (let index = end - integers.groupSize; index < end; index += 1) {
          out[to + index] = scale * levels[index]!;
        }
      }
    },
  };
}

/** A block of 32 codes that stand for integers: `values` of each code. */
function codedType(
  name: string,
  bits: 4 | 8,
  place: CodePlace,
  values: readonly number[],
  scale: (bytes: Uint8Array, at: number) => number = float16,
): BlockType {
  const table = Int8Array.from(values);
  const levels = (bytes: Uint8Array, at: number, out: Int8Array, to: number) =>
    readCodes(bytes, at, place, table, out, to);
  return integerType(
    name,
    { elements: BLOCK, bytes: place.codes + 16 },
    { bits, groupSize: BLOCK, levels, scale, pack: bits === 4 ? packCodes(place.codes) : null },
  );
}

/** The codes of a type of 4 bits are its levels; only their order differs. */
const packCodes =
  (codes: number) =>
  (bytes: Uint8Array, at: number, out: Uint8Array, to: number): void => {
    for (let index = 0; index < 8; index += 1) {
      const first = bytes[at + codes + 2 * index]!;
      const second = bytes[at + codes + 2 * index + 1]!;
      out[to + index] = (first & 15) | ((second & 15) << 4);
      out[to + index + 8] = (first >> 4) | (second & 0xf0);
    }
  };

const centered = (count: number): number[] => Array.from({ length: count }, (_, code) => code - count / 2);

/** The values of IQ4_NL's sixteen codes. */
const IQ4_NL = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
/** The values of MXFP4's sixteen codes, doubled. */
const MXFP4 = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

const PLAIN_CODES = Int8Array.from({ length: 32 }, (_, code) => code);

/** Q4_1 and Q5_1: scale · code + minimum. */
function minimumType(name: string, place: CodePlace): BlockType {
  const codes = new Int8Array(BLOCK);
  return {
    name,
    elements: BLOCK,
    bytes: place.codes + 16,
    integers: null,
    decode(bytes, at, out, to) {
      readCodes(bytes, at, place, PLAIN_CODES, codes, 0);
      const scale = float16(bytes, at);
      const minimum = float16(bytes, at + 2);
      for (let index = 0; index < BLOCK; index += 1) out[to + index] = scale * codes[index]! + minimum;
    },
  };
}

/** One of the eight 6-bit scales of a block of Q4_K or Q5_K, or one of its eight minima (`from` = 4). */
function packedScale(bytes: Uint8Array, at: number, index: number, from: 0 | 4): number {
  if (index < 4) return bytes[at + index + from]! & 63;
  const low = bytes[at + index + 4]!;
  const high = bytes[at + index - 4 + from]! >> 6;
  return (from === 0 ? low & 15 : low >> 4) | (high << 4);
}

/** Q4_K and Q5_K: eight groups of 32 with a scale and a minimum. */
const groupedType = (name: string, { codes, fifth }: CodePlace): BlockType => ({
  name,
  elements: SUPER_BLOCK,
  bytes: codes + 128,
  integers: null,
  decode(bytes, at, out, to) {
    const [factor, base] = [float16(bytes, at), float16(bytes, at + 2)];
    for (let group = 0; group < 8; group += 2) {
      const scale = factor * packedScale(bytes, at + 4, group, 0);
      const minimum = base * packedScale(bytes, at + 4, group, 4);
      const scale2 = factor * packedScale(bytes, at + 4, group + 1, 0);
      const minimum2 = base * packedScale(bytes, at + 4, group + 1, 4);
      const from = at + codes + 16 * group;
      for (let index = 0; index < BLOCK; index += 1) {
        const pair = bytes[from + index]!;
        const high = fifth === undefined ? 0 : bytes[at + fifth + index]! >> group;
        const place = to + BLOCK * group + index;
        out[place] = scale * ((pair & 15) | ((high & 1) << 4)) - minimum;
        out[place + BLOCK] = scale2 * ((pair >> 4) | ((high & 2) << 3)) - minimum2;
      }
    }
  },
});

/** Q6_K: two halves of 128; quarters of 32 share bytes of low and of high bits. */
function readQ6(bytes: Uint8Array, at: number, out: Int8Array, to: number): void {
  for (let group = 0; group < 8; group += 1) {
    const [half, quarter] = [group >> 2, group & 3];
    const low = at + 64 * half + BLOCK * (quarter & 1);
    const high = at + 128 + BLOCK * half;
    const shift = 4 * (quarter >> 1);
    for (let index = 0; index < BLOCK; index += 1) {
      const code =
        ((bytes[low + index]! >> shift) & 15) | (((bytes[high + index]! >> (2 * quarter)) & 3) << 4);
      out[to + BLOCK * group + index] = code - 32;
    }
  }
}

const Q8_0 = integerType(
  'Q8_0',
  { elements: BLOCK, bytes: 34 },
  {
    bits: 8,
    groupSize: BLOCK,
    pack: null,
    scale: float16,
    levels(bytes, at, out, to) {
      for (let index = 0; index < BLOCK; index += 1) out[to + index] = bytes[at + 2 + index]!;
    },
  },
);

const Q6_K = integerType(
  'Q6_K',
  { elements: SUPER_BLOCK, bytes: 210 },
  {
    bits: 8,
    groupSize: 16,
    pack: null,
    levels: readQ6,
    scale: (bytes, at, group) => float16(bytes, at + 208) * ((bytes[at + 192 + group]! << 24) >> 24),
  },
);

/** The supported types by their number in ggml. */
export const BLOCK_TYPES: ReadonlyMap<number, BlockType> = new Map([
  [0, plain('F32', 4)],
  [1, plain('F16', 2)],
  [30, plain('BF16', 2)],
  [2, codedType('Q4_0', 4, { codes: 2 }, centered(16))],
  [3, minimumType('Q4_1', { codes: 4 })],
  [6, codedType('Q5_0', 8, { codes: 6, fifth: 2 }, centered(32))],
  [7, minimumType('Q5_1', { codes: 8, fifth: 4 })],
  [8, Q8_0],
  [12, groupedType('Q4_K', { codes: 16 })],
  [13, groupedType('Q5_K', { codes: 48, fifth: 16 })],
  [14, Q6_K],
  [20, codedType('IQ4_NL', 8, { codes: 2 }, IQ4_NL)],
  [39, codedType('MXFP4', 8, { codes: 1 }, MXFP4, (bytes, at) => 2 ** (bytes[at]! - 128))],
]);

const OTHER_TYPES: Readonly<Record<number, string>> = {
  9: 'Q8_1',
  10: 'Q2_K',
  11: 'Q3_K',
  16: 'IQ2_XXS',
  17: 'IQ2_XS',
  18: 'IQ3_XXS',
  19: 'IQ1_S',
  21: 'IQ3_S',
  22: 'IQ2_S',
  23: 'IQ4_XS',
  29: 'IQ1_M',
};

/** Returns the name of a type that is not supported. */
export const typeName = (number: number): string => OTHER_TYPES[number] ?? `number ${number}`;

/** Decodes whole blocks. `bytes` begin at a multiple of 8 in their buffer. */
export function decodeBlocks(
  { name, elements, bytes: size, decode }: BlockType,
  bytes: Uint8Array,
): Float32Array {
  if (decode === null) return DECODERS[name]!(bytes);
  const values = new Float32Array((bytes.length / size) * elements);
  for (let at = 0, to = 0; at < bytes.length; at += size, to += elements) decode(bytes, at, values, to);
  return values;
}

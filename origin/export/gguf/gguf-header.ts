import { BLOCK_TYPES, type BlockType, typeName } from './block-types.ts';
import { type ByteSource, HeaderCursor } from './header-cursor.ts';

type NumberArray =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | Float64Array;

/** A value of the metadata. Arrays of 64-bit integers become doubles, arrays of booleans bytes. */
export type MetadataValue = string | number | boolean | readonly string[] | NumberArray;

export interface GgufTensor {
  readonly name: string;
  readonly type: BlockType;
  /** Outermost dimension first, as in safetensors. GGUF stores the reverse. */
  readonly shape: readonly number[];
  /** Position of the first block in the file, in bytes. */
  readonly start: number;
  readonly bytes: number;
}

export interface GgufHeader {
  readonly metadata: ReadonlyMap<string, MetadataValue>;
  readonly tensors: readonly GgufTensor[];
}

const MAGIC = 0x46554747; // "GGUF"
const MAX_KEY_BYTES = 0xffff;
const MAX_TENSOR_NAME_BYTES = 255;
const MAX_TEXT_BYTES = 2 ** 28;
const MAX_DIMENSIONS = 4;
/** A text takes up to four times its size in the file, so their number is bounded. */
const MAX_TEXTS = 2 ** 22;
/** Bytes of the smallest entry: a key of no bytes with a value of one, and a tensor of one dimension. */
const MIN_KEY_BYTES = 13;
const MIN_TENSOR_BYTES = 32;
const DEFAULT_ALIGNMENT = 32;
const MAX_ALIGNMENT = 2 ** 16;

/**
 * Reads the header of one GGUF file, version 2 or 3, as ggml's docs/gguf.md describes it.
 * @throws Error naming the key or tensor that is damaged
 */
export function readGgufHeader(source: ByteSource): GgufHeader {
  const cursor = new HeaderCursor(source);
  if (cursor.u32() !== MAGIC) throw cursor.fault('does not begin with "GGUF": this is no GGUF file');
  const version = cursor.u32();
  if (version !== 2 && version !== 3) throw cursor.fault(`has ${versionFault(version)}`);
  const tensorCount = readCount(cursor, 'tensors', MIN_TENSOR_BYTES);
  const keyCount = readCount(cursor, 'keys', MIN_KEY_BYTES);
  const metadata = readMetadata(cursor, keyCount);
  const entries: Omit<GgufTensor, 'bytes'>[] = [];
  for (let index = 0; index < tensorCount; index += 1) entries.push(readTensor(cursor, index));
  const alignment = alignmentOf(metadata);
  const dataStart = Math.ceil(cursor.position / alignment) * alignment;
  return { metadata, tensors: placeTensors(entries, { dataStart, alignment, size: source.size }) };
}

const versionFault = (version: number): string =>
  version === 0x02000000 || version === 0x03000000
    ? 'big-endian numbers; only little-endian files are supported'
    : `version ${version}; versions 2 and 3 are supported`;

function readCount(cursor: HeaderCursor, what: string, minBytes: number): number {
  const count = cursor.u64();
  if (count * minBytes <= cursor.remaining) return count;
  throw cursor.fault(`claims ${count} ${what}, more than the file can contain`);
}

function readMetadata(cursor: HeaderCursor, count: number): Map<string, MetadataValue> {
  const metadata = new Map<string, MetadataValue>();
  const texts = { left: MAX_TEXTS };
  for (let index = 0; index < count; index += 1) {
    cursor.subject = `key ${index + 1} of ${count}`;
    const key = cursor.text(MAX_KEY_BYTES);
    cursor.subject = `key ${JSON.stringify(key)}`;
    if (metadata.has(key)) throw cursor.fault('occurs twice');
    metadata.set(key, readValue(cursor, cursor.u32(), texts));
  }
  return metadata;
}

/** Arrays of the scalar types, by the number of the value type. */
const SCALARS = {
  0: Uint8Array,
  1: Int8Array,
  2: Uint16Array,
  3: Int16Array,
  4: Uint32Array,
  5: Int32Array,
  6: Float32Array,
  7: Uint8Array,
  10: BigUint64Array,
  11: BigInt64Array,
  12: Float64Array,
};

const FLOAT = 6;
const BOOLEAN = 7;
const TEXT = 8;
const ARRAY = 9;

/** Returns the shortest decimal number that rounds to this float32: 1e-5 instead of 0.000009999999747. */
function shortestFloat(value: number): number {
  for (let digits = 6; digits < 9; digits += 1) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}

function readValue(cursor: HeaderCursor, type: number, texts: { left: number }): MetadataValue {
  if (type === TEXT) return cursor.text(MAX_TEXT_BYTES);
  if (type !== ARRAY) {
    const [value = 0] = readScalars(cursor, type, 1);
    if (type === BOOLEAN) return value !== 0;
    return type === FLOAT ? shortestFloat(value) : value;
  }
  const element = cursor.u32();
  const count = cursor.u64();
  if (element !== TEXT) return readScalars(cursor, element, count);
  texts.left -= count;
  if (texts.left < 0 || count * 8 > cursor.remaining) throw cursor.fault(`claims ${count} texts: too many`);
  const values: string[] = [];
  for (let index = 0; index < count; index += 1) values.push(cursor.text(MAX_TEXT_BYTES));
  return values;
}

/** Integers of 64 bits become doubles: those beyond 2^53 are rounded. */
function readScalars(cursor: HeaderCursor, type: number, count: number): NumberArray {
  if (!(type in SCALARS)) throw cursor.fault(`has a value of type ${type}, which is not supported`);
  const Values = SCALARS[type as keyof typeof SCALARS];
  const values = new Values(cursor.bytes(count * Values.BYTES_PER_ELEMENT).buffer);
  const isWide = values instanceof BigUint64Array || values instanceof BigInt64Array;
  return isWide ? Float64Array.from(values, Number) : values;
}

function readTensor(cursor: HeaderCursor, index: number): Omit<GgufTensor, 'bytes'> {
  cursor.subject = `tensor ${index + 1}`;
  const name = cursor.text(MAX_TENSOR_NAME_BYTES);
  cursor.subject = `tensor ${JSON.stringify(name)}`;
  const dimensions = cursor.u32();
  if (dimensions < 1 || dimensions > MAX_DIMENSIONS) {
    throw cursor.fault(`has ${dimensions} dimensions; 1 to ${MAX_DIMENSIONS} are allowed`);
  }
  const shape = Array.from({ length: dimensions }, () => cursor.u64()).reverse();
  const number = cursor.u32();
  const type = BLOCK_TYPES.get(number);
  if (type === undefined) {
    const supported = [...BLOCK_TYPES.values()].map((each) => each.name).join(', ');
    throw cursor.fault(
      `has type ${typeName(number)}; supported are ${supported}. Choose a file with these types`,
    );
  }
  if (shape.some((size) => size === 0) || shape.at(-1)! % type.elements !== 0) {
    throw cursor.fault(`has the shape ${shape.join(' × ')}, which ${type.name} does not allow`);
  }
  return { name, type, shape, start: cursor.u64() };
}

function alignmentOf(metadata: ReadonlyMap<string, MetadataValue>): number {
  const alignment = metadata.get('general.alignment') ?? DEFAULT_ALIGNMENT;
  const isPower = typeof alignment === 'number' && Number.isInteger(Math.log2(alignment));
  if (isPower && alignment >= 1 && alignment <= MAX_ALIGNMENT) return alignment;
  throw new Error(`key "general.alignment" must be a power of two up to ${MAX_ALIGNMENT}`);
}

/** Checks that the tensors are aligned, lie in the file and do not overlap. */
function placeTensors(
  entries: readonly Omit<GgufTensor, 'bytes'>[],
  { dataStart, alignment, size }: { dataStart: number; alignment: number; size: number },
): GgufTensor[] {
  const tensors = entries.map((entry) => {
    const elements = entry.shape.reduce((product, count) => product * count, 1);
    const bytes = (elements / entry.type.elements) * entry.type.bytes;
    const fault = (message: string) => new Error(`tensor ${JSON.stringify(entry.name)} ${message}`);
    if (entry.start % alignment !== 0) throw fault(`begins at ${entry.start}, no multiple of ${alignment}`);
    const start = dataStart + entry.start;
    if (start + bytes > size) {
      throw fault(
        `ends at byte ${start + bytes}, but the file has ${size}: the file is damaged or incomplete`,
      );
    }
    return { ...entry, start, bytes };
  });
  const inOrder = tensors.toSorted((left, right) => left.start - right.start);
  inOrder.forEach(({ name, start }, index) => {
    const before = inOrder[index - 1];
    if (before !== undefined && before.start + before.bytes > start) {
      throw new Error(`tensor ${JSON.stringify(name)} overlaps ${JSON.stringify(before.name)}`);
    }
  });
  return tensors;
}

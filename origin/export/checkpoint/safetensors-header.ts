import { ModelError } from '@continuo/origin/model/config/model-json.ts';
import { isJsonObject } from '@continuo/shared/json-object.ts';
import * as z from 'zod';

/** Header of a safetensors file: 8 bytes of its length, then JSON of that length, then the tensors. */

/** Bytes of an element by dtype. */
const ELEMENT_BYTES: Readonly<Record<string, number>> = {
  BOOL: 1,
  U8: 1,
  I8: 1,
  F8_E4M3: 1,
  F8_E5M2: 1,
  F8_E8M0: 1,
  U16: 2,
  I16: 2,
  F16: 2,
  BF16: 2,
  U32: 4,
  I32: 4,
  F32: 4,
  U64: 8,
  I64: 8,
  F64: 8,
};

const LENGTH_BYTES = 8;
/** As the format has it. */
const MAX_HEADER_BYTES = 100_000_000;

/** A name of the file on one line: names are any strings. */
const shown = (name: string): string => JSON.stringify(name.slice(0, 200)).slice(1, -1);

export interface StoredTensor {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Position in the file. */
  readonly offset: number;
  readonly bytes: number;
}

const size = z.int().nonnegative();
const entrySchema = z.object({
  dtype: z.string(),
  shape: z.array(size),
  data_offsets: z.tuple([size, size]),
});

/** Reads `length` bytes of the file at `position`. */
type ReadBytes = (position: number, length: number) => Promise<Uint8Array>;

/**
 * Reads and checks a header: tensors are of known types, have as many bytes as their shapes need, and fill
 * the file without overlap or gap.
 * @param file for messages
 * @throws ModelError that names the tensor
 */
export async function readHeader(file: string, fileBytes: number, read: ReadBytes): Promise<StoredTensor[]> {
  if (fileBytes < LENGTH_BYTES) throw new ModelError(`${file} is truncated: it has ${fileBytes} bytes`);
  const first = Buffer.from(await read(0, LENGTH_BYTES));
  const length = first.readBigUInt64LE();
  if (length > BigInt(Math.min(MAX_HEADER_BYTES, fileBytes - LENGTH_BYTES))) {
    throw new ModelError(
      `${file} is truncated or damaged: its header has ${length} bytes, the file ${fileBytes}`,
    );
  }
  const start = LENGTH_BYTES + Number(length);
  const text = Buffer.from(await read(LENGTH_BYTES, Number(length))).toString('utf8');
  return parseHeader(file, text, start, fileBytes);
}

function parseHeader(file: string, text: string, start: number, fileBytes: number): StoredTensor[] {
  const tensors = Object.entries(parseObject(file, text))
    .filter(([name]) => name !== '__metadata__')
    .map(([name, entry]) => checkedTensor(file, name, entry, start));
  const ordered = tensors.toSorted((a, b) => a.offset - b.offset || a.bytes - b.bytes);
  let end = start;
  for (const { name, offset, bytes } of ordered) {
    if (offset < end) throw new ModelError(`${file}: tensor ${shown(name)} overlaps the one before it`);
    if (offset > end)
      throw new ModelError(`${file}: ${offset - end} bytes before tensor ${shown(name)} belong to none`);
    end = offset + bytes;
    if (end > fileBytes) {
      throw new ModelError(
        `${file} is truncated: tensor ${shown(name)} ends at byte ${end}, the file has ${fileBytes}`,
      );
    }
  }
  if (end < fileBytes)
    throw new ModelError(`${file}: ${fileBytes - end} bytes after the last tensor belong to none`);
  return ordered;
}

function parseObject(file: string, text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (isJsonObject(value)) return value;
  } catch {
    // Reported below, as JSON that is not an object is.
  }
  throw new ModelError(`${file} is not a safetensors file: its header is not a JSON object`);
}

function checkedTensor(file: string, name: string, entry: unknown, start: number): StoredTensor {
  const parsed = entrySchema.safeParse(entry);
  if (!parsed.success) {
    const { path, message } = parsed.error.issues[0]!;
    throw new ModelError(`${file}: tensor ${shown(name)}: ${path.join('.') || 'entry'}: ${message}`);
  }
  const { dtype, shape, data_offsets } = parsed.data;
  const elementBytes = Object.hasOwn(ELEMENT_BYTES, dtype) ? ELEMENT_BYTES[dtype] : undefined;
  if (elementBytes === undefined)
    throw new ModelError(`${file}: tensor ${shown(name)} has the unknown type ${shown(dtype)}`);
  const bytes = shape.reduce((product, length) => product * length, elementBytes);
  const [begin, end] = data_offsets;
  if (end - begin !== bytes) {
    const says = `says that it has ${end - begin} bytes`;
    throw new ModelError(
      `${file}: tensor ${shown(name)} ${says}, but ${dtype} [${shape.join(', ')}] needs ${bytes}`,
    );
  }
  return { name, dtype, shape, offset: start + begin, bytes };
}

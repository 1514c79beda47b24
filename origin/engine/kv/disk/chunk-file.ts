import { crc32 } from 'node:zlib';

/**
 * The format of a file that holds one stored chunk: a header, then the payload. Numbers are little-endian.
 *
 * Bytes 0–7: magic and version. 8–11: CRC-32 of everything behind it. 12–15: contents. 16–19: bytes of the payload. 20–31: 0.
 * 32–63: the chunk's name.
 */

const MAGIC = Buffer.from('CTKV');
/** Changes with the format of the header or of a payload. */
const VERSION = 2;
const CHECKED_FROM = 12;
const NAME_AT = 32;
export const HEADER_BYTES = 64;

/** What a file says about a chunk. */
export interface ChunkFile {
  /** What the chunk has beside its KV, as bits. */
  readonly contents: number;
  /** A view of the file's bytes. */
  readonly payload: Uint8Array;
}

/**
 * Writes a file to `memory` and returns its bytes, a view.
 * @param name 64 hexadecimal digits
 * @param parts of the payload, in order
 */
export function encodeChunk(
  memory: Buffer,
  name: string,
  contents: number,
  parts: readonly Uint8Array[],
): Buffer {
  let end = HEADER_BYTES;
  for (const part of parts) {
    memory.set(part, end);
    end += part.length;
  }
  const file = memory.subarray(0, end);
  file.fill(0, 0, HEADER_BYTES);
  MAGIC.copy(file);
  file.writeUInt32LE(VERSION, 4);
  file.writeUInt32LE(contents, 12);
  file.writeUInt32LE(end - HEADER_BYTES, 16);
  file.write(name, NAME_AT, 'hex');
  file.writeUInt32LE(crc32(file.subarray(CHECKED_FROM)), 8);
  return file;
}

/** Returns null if the bytes are not the whole file of that chunk. */
export function decodeChunk(file: Buffer, name: string): ChunkFile | null {
  const isChunk =
    file.length >= HEADER_BYTES &&
    file.subarray(0, 4).equals(MAGIC) &&
    file.readUInt32LE(4) === VERSION &&
    file.readUInt32LE(16) === file.length - HEADER_BYTES &&
    file.toString('hex', NAME_AT, HEADER_BYTES) === name &&
    file.readUInt32LE(8) === crc32(file.subarray(CHECKED_FROM));
  return isChunk ? { contents: file.readUInt32LE(12), payload: file.subarray(HEADER_BYTES) } : null;
}

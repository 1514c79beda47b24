import { createSecretKey, subtle, type webcrypto } from 'node:crypto';

/**
 * The format of a file that holds one stored chunk: a header, then the payload. Numbers are little-endian.
 *
 * Bytes 0–7: magic and version. 8–11: contents. 12–15: bytes of the payload. 16–31: 0. 32–63: HMAC-SHA256 of
 * the file as it is with the chunk's name in these bytes. Its key is secret, so another program that can
 * write to the directory cannot make a valid file.
 */

const MAGIC = Buffer.from('CTKV');
/** Changes with the format of the header or of a payload. */
const VERSION = 3;
const CODE_AT = 32;
export const HEADER_BYTES = 64;

/** What a file says about a chunk. */
export interface ChunkFile {
  /** What the chunk has beside its KV, as bits. */
  readonly contents: number;
  /** A view of the file's bytes. */
  readonly payload: Uint8Array;
}

export type FileKey = webcrypto.CryptoKey;

export const fileKey = (secret: string): FileKey =>
  createSecretKey(secret, 'utf8').toCryptoKey({ name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify']);

/**
 * Writes a file to `memory` and returns its bytes, a view, which `sealChunk` completes.
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
  file.writeUInt32LE(contents, 8);
  file.writeUInt32LE(end - HEADER_BYTES, 12);
  file.write(name, CODE_AT, 'hex');
  return file;
}

/** Replaces the name by the code. On another thread: a large chunk takes milliseconds. */
export async function sealChunk(file: Buffer, key: FileKey): Promise<void> {
  file.set(new Uint8Array(await subtle.sign('HMAC', key, file)), CODE_AT);
}

/** Returns null if the bytes are not that chunk's whole file, sealed with that key. Changes the bytes. */
export async function decodeChunk(file: Buffer, name: string, key: FileKey): Promise<ChunkFile | null> {
  const isChunk =
    file.length >= HEADER_BYTES && file.subarray(0, 4).equals(MAGIC) && file.readUInt32LE(4) === VERSION;
  if (!isChunk) return null;
  const code = Uint8Array.from(file.subarray(CODE_AT, HEADER_BYTES));
  file.write(name, CODE_AT, 'hex');
  if (!(await subtle.verify('HMAC', key, code, file))) return null;
  return { contents: file.readUInt32LE(8), payload: file.subarray(HEADER_BYTES) };
}

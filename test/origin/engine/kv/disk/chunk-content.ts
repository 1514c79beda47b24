import { createHash } from 'node:crypto';
import * as fs from 'node:fs/promises';
import {
  ChunkDirectory,
  type ChunkDirectoryOptions,
} from '../../../../../origin/engine/kv/disk/chunk-directory.ts';
import { HEADER_BYTES } from '../../../../../origin/engine/kv/disk/chunk-file.ts';

export const PAYLOAD = 300;
export const FILE = HEADER_BYTES + PAYLOAD;

/** A name whose first character is the family. */
export const nameOf = (family: number, serial: number): string =>
  `${family}`.repeat(16) + createHash('sha256').update(`${serial}`).digest('hex').slice(16);

/** The only right content of a chunk of that contents, in two parts. */
export function contentOf(name: string, contents: number): Uint8Array[] {
  const length = PAYLOAD - (Number.parseInt(name.slice(20, 24), 16) % 100);
  const bytes = Buffer.alloc(length, createHash('sha256').update(`${name} ${contents}`).digest());
  return [bytes.subarray(0, 7), bytes.subarray(7)];
}

export function open(directory: string, options: Partial<ChunkDirectoryOptions> = {}): ChunkDirectory {
  return new ChunkDirectory({
    directory,
    limitBytes: 1e9,
    payloadBytes: PAYLOAD,
    queueBytes: 1e6,
    fs,
    id: 'test',
    secret: 'of the installation',
    now: Date.now,
    warn: () => undefined,
    ...options,
  });
}

/** Returns what a chunk has; null if it cannot be read. @throws Error if it has another content */
export async function contentsOf(chunks: ChunkDirectory, name: string): Promise<number | null> {
  const chunk = await chunks.read(name, Buffer.alloc(FILE));
  if (chunk === null) return null;
  const isRight = Buffer.concat(contentOf(name, chunk.contents)).equals(chunk.payload);
  if (!isRight) throw new Error(`${name} has another content`);
  return chunk.contents;
}

import { createReadStream, createWriteStream } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createInflateRaw } from 'node:zlib';
import { HubError } from '../hub/hub-error.ts';

/** Extracts files from ZIP archives below 4 GiB (PKWARE's APPNOTE.TXT, sections 4.3.7, 4.3.12 and 4.3.16). */

const LOCAL_HEADER_BYTES = 30;
const ENTRY = 0x02014b50;
const ENTRY_BYTES = 46;
const END = Buffer.from('PK\x05\x06', 'latin1');
const END_BYTES = 22;
const MAX_COMMENT_BYTES = 0xffff;
const DEFLATED = 8;

interface ZipEntry {
  readonly name: string;
  readonly method: number;
  readonly compressedBytes: number;
  readonly localHeader: number;
}

/**
 * Extracts files by their names without folders. A file gets its name when it is complete.
 * @throws HubError if the archive is damaged or lacks one of them
 */
export async function extractFiles(archive: string, names: readonly string[], folder: string): Promise<void> {
  const handle = await open(archive);
  try {
    const entries = await readEntries(handle, path.basename(archive));
    for (const name of names) {
      const entry = entries.find((one) => path.posix.basename(one.name) === name);
      if (entry === undefined) throw new HubError(`${path.basename(archive)} does not contain ${name}`);
      const target = path.join(folder, name);
      await extract(archive, entry, await dataStart(handle, entry), `${target}.incomplete`);
      await rename(`${target}.incomplete`, target);
    }
  } finally {
    await handle.close();
  }
}

async function readEntries(handle: FileHandle, archive: string): Promise<ZipEntry[]> {
  const { size } = await handle.stat();
  const tail = await readAt(handle, Math.max(0, size - END_BYTES - MAX_COMMENT_BYTES), size);
  const end = tail.lastIndexOf(END);
  if (end < 0) throw new HubError(`${archive} is not a ZIP archive`);
  const count = tail.readUInt16LE(end + 10);
  const start = tail.readUInt32LE(end + 16);
  const directory = await readAt(handle, start, start + tail.readUInt32LE(end + 12));
  const entries: ZipEntry[] = [];
  let at = 0;
  while (entries.length < count) {
    if (at + ENTRY_BYTES > directory.length || directory.readUInt32LE(at) !== ENTRY) {
      throw new HubError(`${archive} has a damaged directory`);
    }
    const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map((field) =>
      directory.readUInt16LE(at + field),
    ) as [number, number, number];
    entries.push({
      name: directory.toString('utf8', at + ENTRY_BYTES, at + ENTRY_BYTES + nameBytes),
      method: directory.readUInt16LE(at + 10),
      compressedBytes: directory.readUInt32LE(at + 20),
      localHeader: directory.readUInt32LE(at + 42),
    });
    at += ENTRY_BYTES + nameBytes + extraBytes + commentBytes;
  }
  return entries;
}

/** The lengths of the local header can differ from those of the directory. */
async function dataStart(handle: FileHandle, { localHeader }: ZipEntry): Promise<number> {
  const header = await readAt(handle, localHeader, localHeader + LOCAL_HEADER_BYTES);
  return localHeader + LOCAL_HEADER_BYTES + header.readUInt16LE(26) + header.readUInt16LE(28);
}

async function extract(archive: string, entry: ZipEntry, start: number, target: string): Promise<void> {
  const end = start + entry.compressedBytes - 1;
  const inflate = entry.method === DEFLATED ? createInflateRaw() : new PassThrough();
  await pipeline(createReadStream(archive, { start, end }), inflate, createWriteStream(target));
}

async function readAt(handle: FileHandle, start: number, end: number): Promise<Buffer> {
  const bytes = Buffer.alloc(end - start);
  const { bytesRead } = await handle.read(bytes, 0, bytes.length, start);
  return bytes.subarray(0, bytesRead);
}

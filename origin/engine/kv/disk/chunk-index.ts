import { join } from 'node:path';

/** The part of node:fs/promises that a chunk directory uses. */
export type FileSystem = Pick<
  typeof import('node:fs/promises'),
  'open' | 'opendir' | 'rename' | 'stat' | 'unlink' | 'utimes'
>;

/** One file of a chunk directory. */
interface KnownFile {
  readonly bytes: number;
  /** As in the file; 0 until it has been read. */
  contents: number;
  /** Unix milliseconds of the modification time, which tells the next start when the chunk was used. */
  savedAt: number;
}

/** Digits at the start of a name that all chunks of prompts with the same first chunk share. */
export const FAMILY_DIGITS = 16;

/** The files of a chunk directory by name, least recently used first. */
export class ChunkIndex {
  readonly #files = new Map<string, KnownFile>();
  #bytes = 0;

  get size(): number {
    return this.#files.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get oldest(): string | undefined {
    return this.#files.keys().next().value;
  }

  get(name: string): KnownFile | undefined {
    return this.#files.get(name);
  }

  /** Adds or replaces a file, which becomes the most recently used one. */
  set(name: string, file: KnownFile): void {
    this.delete(name);
    this.#files.set(name, file);
    this.#bytes += file.bytes;
  }

  delete(name: string): void {
    this.#bytes -= this.#files.get(name)?.bytes ?? 0;
    this.#files.delete(name);
  }

  /** Returns the names that begin with the same family as `name`. */
  family(name: string): string[] {
    return [...this.#files.keys()].filter((file) => isSameFamily(name, file));
  }
}

export const isSameFamily = (left: string, right: string): boolean =>
  left.slice(0, FAMILY_DIGITS) === right.slice(0, FAMILY_DIGITS);

const CHUNK_FILE = /^([0-9a-f]{64})\.kv$/;
const TEMPORARY_FILE = /^[0-9a-f]{64}\.kv\..+\.tmp$/;
/** A temporary file that is older was left by a process that died. A younger one may be another origin's. */
const TEMPORARY_MS = 60_000;
/** Each turn of the event loop may be as long as a step of the engine. */
const FILES_AT_ONCE = 128;

/** Returns the name of a chunk's file. */
export const fileOf = (name: string): string => `${name}.kv`;

/**
 * Adds the chunks of a directory to the index and removes the temporary files of processes that died.
 * @param now Unix milliseconds
 * @returns the number of other files
 */
export async function scanDirectory(
  directory: string,
  fs: Pick<FileSystem, 'opendir' | 'stat' | 'unlink'>,
  index: ChunkIndex,
  now: number,
): Promise<number> {
  const files: { readonly name: string; readonly bytes: number; readonly savedAt: number }[] = [];
  const inspect = async (name: string): Promise<void> => {
    const { size: bytes, mtimeMs: savedAt } = await fs.stat(join(directory, fileOf(name)));
    files.push({ name, bytes, savedAt });
  };
  const removeOld = async (file: string): Promise<void> => {
    const path = join(directory, file);
    if (now - (await fs.stat(path)).mtimeMs >= TEMPORARY_MS) await fs.unlink(path);
  };
  let foreign = 0;
  let batch: Promise<void>[] = [];
  const ignore = (): void => undefined;
  for await (const { name: file } of await fs.opendir(directory, { bufferSize: FILES_AT_ONCE })) {
    const name = CHUNK_FILE.exec(file)?.[1];
    // A file that is removed meanwhile is not an error.
    if (name !== undefined) batch.push(inspect(name).catch(ignore));
    else if (TEMPORARY_FILE.test(file)) batch.push(removeOld(file).catch(ignore));
    else foreign++;
    if (batch.length < FILES_AT_ONCE) continue;
    await Promise.all(batch);
    batch = [];
  }
  await Promise.all(batch);
  for (const { name, ...file } of files.sort((a, b) => a.savedAt - b.savedAt)) {
    index.set(name, { ...file, contents: 0 });
  }
  return foreign;
}

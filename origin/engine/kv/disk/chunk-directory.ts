import { join } from 'node:path';
import { errorCode, errorMessage } from '@continuo/shared/error-details.ts';
import type { MemoryPool } from '../prefix-memory.ts';
import type { ChunkDirectoryStatus } from '../second-tier.ts';
import { bufferPool } from './buffer-pool.ts';
import {
  type ChunkFile,
  decodeChunk,
  encodeChunk,
  type FileKey,
  fileKey,
  HEADER_BYTES,
  sealChunk,
} from './chunk-file.ts';
import { ChunkIndex, type FileSystem, fileOf, isSameFamily, scanDirectory } from './chunk-index.ts';

export interface ChunkDirectoryOptions {
  /** Exists. */
  readonly directory: string;
  /** Most bytes of all files. */
  readonly limitBytes: number;
  /** Most bytes of a chunk. */
  readonly payloadBytes: number;
  /** Most bytes of chunks that wait to be written. */
  readonly queueBytes: number;
  readonly fs: FileSystem;
  /** Names temporary files; differs between all that use the directory. */
  readonly id: string;
  /** Authenticates the files. To an origin with another secret, they are damaged. */
  readonly secret: string;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** Called with one line for the log, at most once a minute per kind of fault. */
  readonly warn: (line: string) => void;
}

interface Write {
  readonly name: string;
  readonly contents: number;
  readonly file: Buffer;
  canceled: boolean;
}

const WARNING_INTERVAL_MS = 60_000;
/** Uses of a file that are closer together change its modification time once. */
const SAVE_INTERVAL_MS = 600_000;

/**
 * Chunks as files of one directory. A file gets its name when it is complete, so a process that dies leaves
 * no partial chunk. Files are written later, one at a time. A fault costs only its chunk: no method throws or
 * rejects.
 */
export class ChunkDirectory {
  readonly #options: ChunkDirectoryOptions;
  readonly #key: FileKey;
  readonly #memory: MemoryPool<Buffer>;
  readonly #index = new ChunkIndex();
  readonly #writes = new Set<Write>();
  readonly #warnedAt = new Map<string, number>();
  readonly #counts = { readChunks: 0, writtenChunks: 0, failedChunks: 0 };
  #work: Promise<void> = Promise.resolve();
  #pending = 0;
  #lastUse = 0;

  constructor(options: ChunkDirectoryOptions) {
    this.#options = options;
    this.#key = fileKey(options.secret);
    this.#memory = bufferPool(HEADER_BYTES + options.payloadBytes, options.queueBytes);
    this.#run('the stored chunks could not be listed', async () => {
      const foreign = await scanDirectory(options.directory, options.fs, this.#index, options.now());
      if (foreign > 0) this.#warn(`${foreign} other files are ignored`);
      await this.#makeRoom(0);
    });
  }

  get status(): ChunkDirectoryStatus {
    return { bytes: this.#index.bytes, files: this.#index.size, ...this.#counts };
  }

  /** True while there is work on the disk, which goes on when the event loop turns. */
  get busy(): boolean {
    return this.#pending > 0;
  }

  /** Resolves when everything is written. */
  async settled(): Promise<void> {
    while (this.busy) await this.#work;
  }

  has(name: string): boolean {
    return this.#index.get(name) !== undefined;
  }

  /** Counts chunks as used, the first one last, because the others are useless without it. */
  use(names: readonly string[]): void {
    for (const name of names.toReversed()) {
      const file = this.#index.get(name);
      if (file === undefined) continue;
      this.#index.set(name, file);
      const now = this.#options.now();
      if (now - file.savedAt < SAVE_INTERVAL_MS) continue;
      // Uses at the same time get different times, so that the next start finds their order.
      this.#lastUse = Math.max(now, this.#lastUse + 1);
      const usedAt = this.#lastUse;
      file.savedAt = usedAt;
      this.#run('the time of a chunk could not be saved', () =>
        this.#options.fs.utimes(this.#path(name), usedAt / 1000, usedAt / 1000),
      );
    }
  }

  /**
   * Copies a chunk and writes it later, unless it is stored with at least the same contents.
   * @param contents what the chunk has beside its KV, as bits
   * @param parts of the payload, in order
   */
  write(name: string, contents: number, parts: readonly Uint8Array[]): void {
    const covers = (stored: Pick<ChunkFile, 'contents'>) => (contents & ~stored.contents) === 0;
    const stored = this.#index.get(name);
    if (stored !== undefined && covers(stored)) return;
    for (const write of this.#writes) if (write.name === name && !write.canceled && covers(write)) return;
    const memory = this.#memory.take();
    if (memory === null) {
      this.#fail('a chunk was not stored, because the disk is slower than the model');
      return;
    }
    const write: Write = {
      name,
      contents,
      file: encodeChunk(memory, name, contents, parts),
      canceled: false,
    };
    this.#writes.add(write);
    this.#run('a chunk could not be stored', async () => {
      try {
        if (!write.canceled) await this.#write(write);
      } finally {
        this.#writes.delete(write);
        this.#memory.give(memory);
      }
    });
  }

  /**
   * Reads a chunk into `memory` and returns a view of it. Returns null if the file is missing, cannot be
   * read, or is damaged; a damaged one is removed.
   */
  async read(name: string, memory: Buffer): Promise<ChunkFile | null> {
    const listed = this.#index.get(name);
    if (listed === undefined) return null;
    try {
      const length = await this.#readInto(memory, name);
      const chunk = await decodeChunk(memory.subarray(0, length), name, this.#key);
      if (chunk === null) {
        this.#remove([name]);
        this.#fail('a damaged or foreign chunk was removed');
        return null;
      }
      listed.contents = chunk.contents;
      // Another origin has replaced it.
      const isReplaced = length !== listed.bytes && this.#index.get(name) === listed;
      if (isReplaced) this.#index.set(name, { ...listed, bytes: length });
      this.#counts.readChunks++;
      return chunk;
    } catch (error) {
      // A file that exists takes its bytes of the limit.
      if (errorCode(error) === 'ENOENT') this.#index.delete(name);
      this.#fail('a chunk could not be read', error);
      return null;
    }
  }

  /** Removes all chunks of prompts with the same first chunk as this one. */
  removeFamily(name: string): void {
    for (const write of this.#writes) write.canceled ||= isSameFamily(name, write.name);
    this.#remove(this.#index.family(name));
  }

  #remove(names: readonly string[]): void {
    for (const name of names) {
      this.#index.delete(name);
      this.#run('a chunk could not be removed', () => this.#unlink(this.#path(name)));
    }
  }

  async #write(write: Write): Promise<void> {
    const { fs, id } = this.#options;
    const { name, contents, file } = write;
    await this.#makeRoom(file.length);
    await sealChunk(file, this.#key);
    const path = this.#path(name);
    const temporary = `${path}.${id}.tmp`;
    try {
      const handle = await fs.open(temporary, 'w', 0o600);
      await handle.writeFile(file).finally(() => handle.close());
      if (!write.canceled) await fs.rename(temporary, path);
    } catch (error) {
      await fs.unlink(temporary).catch(() => undefined);
      throw error;
    }
    if (write.canceled) {
      for (const file of [temporary, path]) await this.#unlink(file);
      return;
    }
    this.#index.set(name, { bytes: file.length, contents, savedAt: this.#options.now() });
    this.#counts.writtenChunks++;
  }

  /** @throws Error if a file cannot be removed, or if the limit is less than `bytes` */
  async #makeRoom(bytes: number): Promise<void> {
    while (this.#index.bytes + bytes > this.#options.limitBytes) {
      const { oldest } = this.#index;
      if (oldest === undefined) throw new Error('it is larger than the limit');
      await this.#unlink(this.#path(oldest));
      this.#index.delete(oldest);
    }
  }

  async #readInto(memory: Buffer, name: string): Promise<number> {
    const handle = await this.#options.fs.open(this.#path(name), 'r');
    try {
      return (await handle.read(memory, 0, memory.length, 0)).bytesRead;
    } finally {
      await handle.close();
    }
  }

  async #unlink(path: string): Promise<void> {
    await this.#options.fs.unlink(path).catch((error: unknown) => {
      if (errorCode(error) !== 'ENOENT') throw error;
    });
  }

  #path(name: string): string {
    return join(this.#options.directory, fileOf(name));
  }

  /** Does work on the disk after all that was begun before it. */
  #run(fault: string, work: () => Promise<unknown>): void {
    this.#pending++;
    this.#work = this.#work.then(work).then(
      () => void this.#pending--,
      (error) => {
        this.#pending--;
        this.#fail(fault, error);
      },
    );
  }

  #fail(fault: string, cause?: unknown): void {
    this.#counts.failedChunks++;
    this.#warn(fault, cause === undefined ? '' : `: ${errorCode(cause) ?? errorMessage(cause)}`);
  }

  #warn(fault: string, details = ''): void {
    const now = this.#options.now();
    if (now - (this.#warnedAt.get(fault) ?? Number.NEGATIVE_INFINITY) < WARNING_INTERVAL_MS) return;
    this.#warnedAt.set(fault, now);
    this.#options.warn(`${fault}${details}`);
  }
}

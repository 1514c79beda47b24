import { createHmac, hash, randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { MAX_TOP_LOGPROBS } from '@continuo/shared/logprob.ts';
import type { KvBytes, ModelShape } from '../../../model/model-runner.ts';
import { idsOf } from '../chunk-tree.ts';
import type { MemoryPool } from '../prefix-memory.ts';
import type { PrefixStore, StoredPrompt } from '../prefix-store.ts';
import { logprobBytes } from '../prompt-logprobs.ts';
import type { CachedPrompt, ChunkDirectoryStatus, SecondTier } from '../second-tier.ts';
import type { ChunkContent, StoredChunk } from '../stored-chunk.ts';
import { bufferPool } from './buffer-pool.ts';
import { ChunkDirectory, type ChunkDirectoryOptions } from './chunk-directory.ts';
import { type ChunkFile, HEADER_BYTES } from './chunk-file.ts';
import { FAMILY_DIGITS } from './chunk-index.ts';

/** The directory is of one model only. */
export type PrefixDisk = Pick<ChunkDirectoryOptions, 'directory' | 'limitBytes' | 'secret'>;

export interface DiskTierOptions extends Omit<ChunkDirectoryOptions, 'payloadBytes'> {
  /** Positions of a chunk. */
  readonly chunk: number;
  readonly positionBytes: number;
  readonly vocabularySize: number;
  /** Changes with everything that the bits of a chunk depend on. */
  readonly identity: string;
  /** A request waits no longer for the disk, in milliseconds. What was not read by then is computed. */
  readonly maxReadMs: number;
}

/** The chunks of a prompt that are in memory, and the names of those that the disk has after them. */
interface Found {
  readonly prompt: StoredPrompt;
  readonly names: readonly string[];
}

/** Contents of a file. */
const LOGPROBS = 1;
const LOGITS = 2;

/**
 * The second tier of the prefix store: keeps chunks as files, and reads those that are not in memory. A chunk
 * is named by a hash of the secret, the identity, the namespace, and all tokens up to its end, so no file has
 * a token of a prompt.
 */
export class DiskTier implements SecondTier {
  readonly #options: DiskTierOptions;
  readonly #logprobsBytes: number;
  readonly #files: ChunkDirectory;
  readonly #memory: MemoryPool<Buffer>;
  /** How often chunks were dropped. What is being read at that time is not used. */
  #drops = 0;
  /** Requests that have stopped waiting for what the disk still reads. */
  #hanging = 0;

  constructor(options: DiskTierOptions) {
    const { chunk, positionBytes, vocabularySize, queueBytes } = options;
    this.#options = options;
    this.#logprobsBytes = (chunk + 1) * logprobBytes(MAX_TOP_LOGPROBS);
    const payloadBytes = 4 * vocabularySize + chunk * positionBytes + this.#logprobsBytes;
    this.#files = new ChunkDirectory({ ...options, payloadBytes });
    // One byte more, so that a longer file is not taken for a whole one.
    this.#memory = bufferPool(HEADER_BYTES + payloadBytes + 1, queueBytes);
  }

  get status(): ChunkDirectoryStatus {
    return this.#files.status;
  }

  /** True while there is work on the disk, which goes on when the event loop turns. */
  get busy(): boolean {
    return this.#files.busy;
  }

  /** Resolves when everything is written. */
  settled(): Promise<void> {
    return this.#files.settled();
  }

  name(namespace: string, before: string | null, ids: string): string {
    const hashed = hash('sha256', `${before ?? `/${this.#namespaceHash(namespace)}`} ${ids}`);
    return before === null ? hashed : before.slice(0, FAMILY_DIGITS) + hashed.slice(FAMILY_DIGITS);
  }

  /** Keyed, so that names tell a reader nothing and no origin finds files of another secret. */
  #namespaceHash(namespace: string): string {
    const { secret, identity } = this.#options;
    return createHmac('sha256', secret).update(`${identity} ${namespace}`).digest('hex');
  }

  keep({ name, kv, hasLogprobs, logprobs, logits }: StoredChunk & { readonly name: string }): void {
    const parts = [kv];
    if (logits !== null) parts.unshift(new Uint8Array(logits.buffer, logits.byteOffset, logits.byteLength));
    if (hasLogprobs) parts.push(logprobs.bytes);
    this.#files.write(name, (hasLogprobs ? LOGPROBS : 0) | (logits === null ? 0 : LOGITS), parts);
  }

  drop(name: string): void {
    this.#drops++;
    this.#files.removeFamily(name);
  }

  load(store: PrefixStore, prompts: readonly CachedPrompt[], signal: AbortSignal): Promise<void> | null {
    if (this.#hanging > 0 || prompts.every((prompt) => this.#find(store, prompt).names.length === 0))
      return null;
    return this.#loadInTime(store, prompts, signal);
  }

  async #loadInTime(
    store: PrefixStore,
    prompts: readonly CachedPrompt[],
    signal: AbortSignal,
  ): Promise<void> {
    const stop = AbortSignal.any([signal, AbortSignal.timeout(this.#options.maxReadMs)]);
    const stopped = new Promise<void>((resolve) => stop.addEventListener('abort', () => resolve()));
    const loaded = this.#load(store, prompts, stop);
    const isLate = await Promise.race([loaded.then(() => false), stopped.then(() => true)]);
    if (!isLate || signal.aborted) return;
    this.#hanging++;
    void loaded.then(() => this.#hanging--);
  }

  async #load(store: PrefixStore, prompts: readonly CachedPrompt[], stop: AbortSignal): Promise<void> {
    // One by one, because prompts of one request often share a prefix.
    for (const prompt of prompts) await this.#loadPrompt(store, this.#find(store, prompt), stop);
  }

  /** Reads several files at once. Adds them in order, up to the first that is missing. */
  async #loadPrompt(store: PrefixStore, { prompt, names }: Found, stop: AbortSignal): Promise<void> {
    const drops = this.#drops;
    let isWhole = true;
    let last = Promise.resolve();
    const insert = async (name: string, memory: Buffer, before: Promise<void>): Promise<void> => {
      const file = await this.#files.read(name, memory);
      await before;
      const content = file === null ? null : this.#contentOf(file, prompt);
      isWhole &&= content !== null && drops === this.#drops && store.insert(prompt, content);
      this.#memory.give(memory);
    };
    for (const name of names) {
      const memory = await this.#memory.wait();
      if (memory === null) break;
      last = insert(name, memory, last);
      if (!isWhole || stop.aborted) break;
    }
    await last;
  }

  /** Finds what memory and disk have of a prompt, and counts it as used. */
  #find(store: PrefixStore, { namespace, tokens, limit }: CachedPrompt): Found {
    const { chunk } = this.#options;
    const prompt = store.use(namespace, tokens, limit);
    const { chunks } = prompt;
    const names: string[] = [];
    let name = chunks.at(-1)?.name ?? null;
    for (let start = chunks.length * chunk; chunks.length + names.length < store.room; start += chunk) {
      const end = Math.min(start + chunk, tokens.length);
      if (start >= end || end > limit) break;
      name = this.name(namespace, name, idsOf(tokens, start, end));
      if (!this.#files.has(name)) break;
      names.push(name);
    }
    this.#files.use([...chunks.map((chunk) => chunk.name), ...names]);
    return { prompt, names };
  }

  /** Returns the content of a prompt's next chunk, as views; null if the file has another length. */
  #contentOf({ contents, payload }: ChunkFile, { tokens, chunks }: StoredPrompt): ChunkContent | null {
    const { chunk, positionBytes, vocabularySize } = this.#options;
    const length = Math.min(chunk, tokens.length - chunks.length * chunk);
    const logitsBytes = (contents & LOGITS) === 0 ? 0 : 4 * vocabularySize;
    const logprobsAt = logitsBytes + length * positionBytes;
    if (payload.length !== logprobsAt + ((contents & LOGPROBS) === 0 ? 0 : this.#logprobsBytes)) return null;
    return {
      kv: payload.subarray(logitsBytes, logprobsAt),
      logits: logitsBytes === 0 ? null : new Float32Array(payload.buffer, payload.byteOffset, vocabularySize),
      logprobs: logprobsAt === payload.length ? null : payload.subarray(logprobsAt),
    };
  }
}

/** Most memory of chunks that wait to be written, and of those that are being read. */
const QUEUE_BYTES = 64 * 2 ** 20;
const MAX_READ_MS = 2000;
/** The start waits no longer for the list of files. Until it is known, requests find nothing on disk. */
const MAX_LIST_MS = 1000;

/**
 * Opens the second tier of the prefix store.
 * @param identity changes with everything that the bits of a chunk depend on
 * @throws Error if the directory cannot be created
 */
export async function openDiskTier(
  { directory, limitBytes, secret }: PrefixDisk,
  identity: string,
  { prefillChunk: chunk, vocabularySize }: ModelShape,
  { positionBytes }: KvBytes,
  warn: (line: string) => void,
): Promise<DiskTier> {
  await fs.mkdir(directory, { recursive: true, mode: 0o700 });
  const disk = new DiskTier({
    directory,
    limitBytes,
    identity,
    chunk,
    positionBytes,
    vocabularySize,
    queueBytes: QUEUE_BYTES,
    maxReadMs: MAX_READ_MS,
    fs,
    id: randomUUID(),
    secret,
    now: Date.now,
    warn,
  });
  await Promise.race([disk.settled(), sleep(MAX_LIST_MS, undefined, { ref: false })]);
  return disk;
}

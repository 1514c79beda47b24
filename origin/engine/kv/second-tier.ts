import type { PrefixStore } from './prefix-store.ts';
import type { ChunkBackup } from './stored-chunk.ts';

/** Counters since the start; `bytes` and `files` are the present ones. */
export interface ChunkDirectoryStatus {
  readonly bytes: number;
  readonly files: number;
  readonly readChunks: number;
  readonly writtenChunks: number;
  /** Chunks that could not be written or read, or that were damaged. */
  readonly failedChunks: number;
}

/** A prompt that the disk may have. */
export interface CachedPrompt {
  readonly namespace: string;
  readonly tokens: Int32Array;
  /** Positions that may be stored. */
  readonly limit: number;
}

/** The tier below the prefix store, such as a disk. */
export interface SecondTier extends ChunkBackup {
  readonly status: ChunkDirectoryStatus;
  /** True while prefixes are being written. */
  readonly busy: boolean;
  /** Resolves when all prefixes are written. */
  settled(): Promise<void>;
  /**
   * Reads the chunks of prompts that are not in memory into the store. Resolves when they are there, or too
   * late.
   * @returns null if there is nothing to read, or if the tier does not answer
   */
  load(store: PrefixStore, prompts: readonly CachedPrompt[], signal: AbortSignal): Promise<void> | null;
}

import { randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KvBytes, ModelShape } from '../../../model/model-runner.ts';
import { DiskTier } from './disk-tier.ts';

export interface PrefixDisk {
  /** Of this model only. */
  readonly directory: string;
  /** Most bytes of all files. */
  readonly limitBytes: number;
  /** Authenticates the files. */
  readonly secret: string;
}

/** Most memory of runs that wait to be written, and of those that are being read. */
const QUEUE_BYTES = 64 * 2 ** 20;
const MAX_READ_MS = 2000;
/** The start waits no longer for the list of files. Until it is known, requests find nothing on disk. */
const MAX_LIST_MS = 1000;

/**
 * Opens the second tier of the prefix store.
 * @param identity changes with everything that the bits of a run depend on
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

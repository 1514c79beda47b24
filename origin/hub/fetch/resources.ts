import { statfsSync, statSync } from 'node:fs';
import type { WeightPrecision } from '@continuo/export/graph/linear.ts';
import { createDirectory } from '../../config/writable-directory.ts';
import { byteSize } from '../../terminal/progress.ts';
import { HubError } from './hub-error.ts';

/** What a model takes of disks and memory, before anything of it is fetched. */

/**
 * Bytes of a built graph by those of its source, whose weights have 16 bits; a GGUF file is built with 8
 * bits.
 */
const GROWTH: Readonly<Record<WeightPrecision | 'gguf', number>> = {
  fp32: 2,
  fp16: 1,
  bf16: 1,
  int8: 0.6,
  int8a8: 0.6,
  int8f32: 0.6,
  int4: 0.35,
  int4f32: 0.35,
  gguf: 1.7,
};

export const builtBytesOf = (bytes: number, precision: keyof typeof GROWTH): number =>
  bytes * GROWTH[precision];

/** Engine, logits and the KV cache of a small model. */
const RUNTIME_BYTES = 400 * 2 ** 20;

interface Needs {
  readonly missingBytes: number;
  readonly builtBytes: number;
  /** Weights of the running model. */
  readonly loadedBytes: number;
}

interface Available {
  /** The directory of fetched repositories. */
  readonly cache: string;
  /** The directory that gets the build. */
  readonly target: string;
  /** Bytes of memory that a process can still take. */
  readonly availableMemory: () => number;
}

/** Compares what a model needs with what is free. @throws HubError */
export function requireResources(
  { missingBytes, builtBytes, loadedBytes }: Needs,
  { cache, target, availableMemory }: Available,
): void {
  for (const directory of [cache, target]) createDirectory(directory);
  const isOneDisk = statSync(cache).dev === statSync(target).dev;
  const disks = isOneDisk
    ? [[cache, missingBytes + builtBytes] as const]
    : [[cache, missingBytes] as const, [target, builtBytes] as const];
  for (const [directory, needed] of disks) requireSpace('the model', needed, directory);
  const [memory, free] = [loadedBytes + RUNTIME_BYTES, availableMemory()];
  if (memory <= free) return;
  throw new HubError(
    `the model needs about ${byteSize(memory)} of memory, but ${byteSize(free)} are free; choose a smaller precision, such as owner/name:q4`,
  );
}

/** @throws HubError if the disk of a directory has fewer free bytes */
export function requireSpace(what: string, bytes: number, directory: string): void {
  const { bavail, bsize } = statfsSync(directory);
  const free = bavail * bsize;
  if (bytes <= free) return;
  throw new HubError(
    `${what} needs about ${byteSize(bytes)} of disk space, but ${directory} has ${byteSize(free)} free`,
  );
}

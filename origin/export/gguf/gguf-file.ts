import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ModelError } from '@continuo/origin/model/config/model-json.ts';
import { errorCode, errorMessage } from '@continuo/shared/error-details.ts';
import { type GgufHeader, type GgufTensor, type MetadataValue, readGgufHeader } from './gguf-header.ts';
import type { ByteSource } from './header-cursor.ts';

interface Shard extends GgufHeader {
  readonly file: number;
  readonly path: string;
}

interface StoredTensor extends GgufTensor {
  readonly file: number;
}

const SHARD_NAME = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/;

/** One GGUF file, or all files of a model that is split into several. */
export class GgufFile {
  readonly path: string;
  /** Of the first file; the others only tell where they belong. */
  readonly metadata: ReadonlyMap<string, MetadataValue>;
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  readonly #files: readonly number[];

  /**
   * @param path the file, or any file of a split model
   * @throws ModelError that names the file and the key or tensor that is damaged
   */
  static open(path: string): GgufFile {
    const shards: Shard[] = [];
    try {
      for (const each of shardPaths(path)) shards.push(openShard(each));
      requireWholeSplit(shards);
      return new GgufFile(path, shards);
    } catch (error) {
      for (const { file } of shards) closeSync(file);
      throw error;
    }
  }

  private constructor(path: string, shards: readonly Shard[]) {
    this.path = path;
    this.metadata = shards[0]!.metadata;
    this.#files = shards.map(({ file }) => file);
    const tensors = new Map<string, StoredTensor>();
    for (const { file, path: shardPath, tensors: stored } of shards) {
      for (const tensor of stored) {
        if (tensors.has(tensor.name)) {
          throw new ModelError(`${shardPath}: tensor ${JSON.stringify(tensor.name)} occurs twice`);
        }
        tensors.set(tensor.name, { ...tensor, file });
      }
    }
    this.tensors = tensors;
  }

  /** Reads `into.length` bytes of a tensor from an offset in it. */
  read(name: string, offset: number, into: Uint8Array): void {
    const { file, start } = this.tensors.get(name)!;
    readFully(file, start + offset, into);
  }

  close(): void {
    for (const file of this.#files) closeSync(file);
  }
}

/** Returns the paths of all files of a split model in order. */
function shardPaths(path: string): string[] {
  const [, stem, , count] = SHARD_NAME.exec(basename(path)) ?? [];
  if (count === undefined) return [path];
  return Array.from({ length: Number(count) }, (_, index) =>
    join(dirname(path), `${stem}-${String(index + 1).padStart(5, '0')}-of-${count}.gguf`),
  );
}

function openShard(path: string): Shard {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    const fault = errorCode(error) === 'ENOENT' ? 'is missing' : `cannot be read: ${errorCode(error)}`;
    throw new ModelError(`${path} ${fault}`);
  }
  try {
    const source: ByteSource = {
      size: fstatSync(file).size,
      read: (position, into) => readFully(file, position, into),
    };
    return { file, path, ...readGgufHeader(source) };
  } catch (error) {
    closeSync(file);
    throw new ModelError(`${path}: ${errorMessage(error)}`);
  }
}

function readFully(file: number, position: number, into: Uint8Array): void {
  let filled = 0;
  while (filled < into.length) {
    const count = readSync(file, into, filled, into.length - filled, position + filled);
    if (count === 0) throw new Error(`ends at byte ${position + filled}: it was cut while it was read`);
    filled += count;
  }
}

/** Compares what the files say of themselves with their names. */
function requireWholeSplit(shards: readonly Shard[]): void {
  shards.forEach(({ metadata, path }, index) => {
    const number = metadata.get('split.no') ?? 0;
    const count = metadata.get('split.count') ?? 1;
    if (number === index && (count === shards.length || (count === 0 && shards.length === 1))) return;
    throw new ModelError(
      `${path}: says that it is file ${Number(number) + 1} of ${count}; ` +
        'a split model needs the names NAME-00001-of-0000N.gguf side by side',
    );
  });
  const expected = shards[0]!.metadata.get('split.tensors.count');
  const count = shards.reduce((sum, { tensors }) => sum + tensors.length, 0);
  if (shards.length > 1 && expected !== count) {
    throw new ModelError(`${shards[0]!.path}: the files have ${count} tensors instead of ${expected}`);
  }
}

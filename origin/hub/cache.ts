import { lstat, readdir, readFile, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { repositoryOf, repositoryPaths } from './cache-layout.ts';
import { onDisk } from './disk.ts';
import { type LockOptions, withFileLock } from './file-lock.ts';
import { HubError } from './hub-error.ts';
import { type Variant, variantsOf } from './variants.ts';

/** One snapshot of the cache that holds a model. */
export interface CachedModel {
  readonly repository: string;
  readonly commit: string;
  /** Branches and tags that stood at the commit when they were last asked for. */
  readonly revisions: readonly string[];
  readonly variants: readonly Variant[];
  /** The snapshot's directory; a variant's directory is relative to it. */
  readonly directory: string;
  readonly bytes: number;
}

/** Every snapshot with an ONNX decoder, by name. A cache that does not exist is empty. */
export async function cachedModels(cache: string): Promise<CachedModel[]> {
  const repositories = (await entries(cache)).toSorted().flatMap((name) => repositoryOf(name) ?? []);
  const models: CachedModel[] = [];
  for (const repository of repositories) models.push(...(await snapshotsOf(cache, repository)));
  return models.filter(({ variants }) => variants.length > 0);
}

/** The model directory of a pulled repository. @throws HubError when it is not in the cache */
export async function findCached(cache: string, repository: string, revision: string): Promise<CachedModel> {
  const found = (await snapshotsOf(cache, repository)).find(
    ({ commit, revisions }) => commit === revision || revisions.includes(revision),
  );
  if (found !== undefined) return found;
  throw new HubError(`${repository} is not in the cache at revision ${revision}; pull it first`);
}

/**
 * Removes everything the cache holds of a repository. Returns the bytes that were freed.
 * @throws HubError when there is nothing
 */
export async function removeCached(cache: string, repository: string, lock: LockOptions): Promise<number> {
  const paths = repositoryPaths(cache, repository);
  return await withFileLock(paths.lock, lock, async () => {
    const before = await bytesBelow(paths.root);
    if (before === null) throw new HubError(`${repository} is not in the cache`);
    await onDisk(paths.root, () => rm(paths.root, { recursive: true }));
    return before;
  });
}

async function snapshotsOf(cache: string, repository: string): Promise<CachedModel[]> {
  const { snapshots, refs } = repositoryPaths(cache, repository);
  const references = await readReferences(refs);
  const commits = (await entries(snapshots)).toSorted();
  return await Promise.all(
    commits.map(async (commit) => {
      const directory = path.join(snapshots, commit);
      const files = await filesBelow(directory);
      const sizes = await Promise.all(
        files.map((file) => stat(path.join(directory, file)).catch(() => null)),
      );
      return {
        repository,
        commit,
        revisions: [...references].flatMap(([name, target]) => (target === commit ? [name] : [])),
        variants: variantsOf(files),
        directory,
        bytes: sizes.reduce((sum, found) => sum + (found?.size ?? 0), 0),
      };
    }),
  );
}

async function readReferences(refs: string): Promise<ReadonlyMap<string, string>> {
  const names = await filesBelow(refs);
  const read = async (name: string) =>
    [name, (await readFile(path.join(refs, name), 'utf8')).trim()] as const;
  return new Map(await Promise.all(names.map(read)));
}

async function entries(directory: string): Promise<string[]> {
  return await readdir(directory).catch(() => []);
}

/** Paths relative to the directory, with `/`; links count as files. */
async function filesBelow(directory: string): Promise<string[]> {
  const found = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
  return found
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => path.relative(directory, path.join(parentPath, name)))
    .map((file) => file.split(path.sep).join('/'));
}

/** Disk space of a directory, a file with several names counted once; null when there is no such directory. */
async function bytesBelow(directory: string): Promise<number | null> {
  if ((await stat(directory).catch(() => null)) === null) return null;
  const files = await filesBelow(directory);
  const found = await Promise.all(files.map((file) => lstat(path.join(directory, file))));
  const contents = new Map(found.map(({ ino, size }) => [ino, size]));
  return [...contents.values()].reduce((sum, size) => sum + size, 0);
}

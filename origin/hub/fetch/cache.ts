import { readdir, readFile, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { type LockOptions, withFileLock } from './file-lock.ts';
import { HubError, withDiskErrors } from './hub-error.ts';
import { type Variant, variantsOf } from './variants.ts';

/**
 * The cache has the layout of Hugging Face's tools, so that they and Continuo share downloads:
 *
 *     models--owner--name/refs/<revision>        commit of a branch or tag
 *     models--owner--name/blobs/<checksum>       contents; <checksum>.incomplete during the download
 *     models--owner--name/snapshots/<commit>/…   files of the repository, each a hard link to a blob
 */

const PREFIX = 'models--';

interface RepositoryPaths {
  readonly root: string;
  readonly refs: string;
  readonly blobs: string;
  readonly snapshots: string;
  /** Locked by the process that changes the repository's directory. */
  readonly lock: string;
}

/** @param repository `owner/name`, checked before */
export function repositoryPaths(cache: string, repository: string): RepositoryPaths {
  const directory = PREFIX + repository.replaceAll('/', '--');
  const root = path.join(cache, directory);
  return {
    root,
    refs: path.join(root, 'refs'),
    blobs: path.join(root, 'blobs'),
    snapshots: path.join(root, 'snapshots'),
    lock: path.join(cache, '.locks', directory, 'continuo-pull.lock'),
  };
}

/** Returns the repository of a directory in the cache; null for other directories. */
export function repositoryOf(directory: string): string | null {
  return directory.startsWith(PREFIX) ? directory.slice(PREFIX.length).replace('--', '/') : null;
}

/** One snapshot in the cache. */
interface CachedModel {
  readonly repository: string;
  readonly commit: string;
  /** Branches and tags that pointed to the commit at their last pull. */
  readonly revisions: readonly string[];
  /** Paths below the snapshot. */
  readonly files: readonly string[];
  readonly variants: readonly Variant[];
  /** The snapshot's directory; a variant's directory is relative to it. */
  readonly directory: string;
  readonly bytes: number;
}

/** Lists every snapshot that has a model, by name. Returns [] if the cache does not exist. */
export async function cachedModels(cache: string): Promise<CachedModel[]> {
  const repositories = (await entries(cache)).flatMap((name) => repositoryOf(name) ?? []);
  const models = await Promise.all(repositories.map((repository) => snapshotsOf(cache, repository)));
  return models.flat().filter(({ variants }) => variants.length > 0);
}

/** Finds the snapshot of a branch, tag or commit. @throws HubError if the cache does not have it */
export async function findCached(cache: string, repository: string, revision: string): Promise<CachedModel> {
  const cached = (await snapshotsOf(cache, repository)).find(
    ({ commit, revisions }) => commit === revision || revisions.includes(revision),
  );
  if (cached !== undefined) return cached;
  throw new HubError(`${repository} is not in the cache at revision ${revision}; pull it first`);
}

/**
 * Deletes a repository's directory.
 * @returns freed bytes
 * @throws HubError if the cache does not have the repository
 */
export async function removeCached(cache: string, repository: string, lock: LockOptions): Promise<number> {
  const paths = repositoryPaths(cache, repository);
  return await withFileLock(paths.lock, lock, async () => {
    if ((await entries(paths.root)).length === 0) throw new HubError(`${repository} is not in the cache`);
    const bytes = await bytesBelow(paths.root);
    await withDiskErrors(paths.root, () => rm(paths.root, { recursive: true }));
    return bytes;
  });
}

async function snapshotsOf(cache: string, repository: string): Promise<CachedModel[]> {
  const { snapshots, refs } = repositoryPaths(cache, repository);
  const references = await Promise.all(
    (await filesBelow(refs)).map(async (revision) => ({
      revision,
      commit: (await readFile(path.join(refs, revision), 'utf8')).trim(),
    })),
  );
  return await Promise.all(
    (await entries(snapshots)).map(async (commit) => {
      const directory = path.join(snapshots, commit);
      const files = await filesBelow(directory);
      return {
        repository,
        commit,
        revisions: references.filter((ref) => ref.commit === commit).map(({ revision }) => revision),
        files,
        variants: variantsOf(files),
        directory,
        bytes: await bytesBelow(directory),
      };
    }),
  );
}

async function entries(directory: string): Promise<string[]> {
  return (await readdir(directory).catch(() => [])).toSorted();
}

/** Paths relative to the directory, with `/`; links count as files. */
async function filesBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => path.relative(directory, path.join(parentPath, name)))
    .map((file) => file.split(path.sep).join('/'));
}

/** Disk space of the files below a directory. A file with several links counts once. */
export async function bytesBelow(directory: string): Promise<number> {
  const files = await filesBelow(directory);
  const stats = await Promise.all(files.map((file) => stat(path.join(directory, file)).catch(() => null)));
  const sizes = new Map(stats.map((file) => [file?.ino, file?.size ?? 0]));
  return [...sizes.values()].reduce((sum, size) => sum + size, 0);
}

import path from 'node:path';

/**
 * The cache layout of Hugging Face's tools, so that they and Continuo share what was downloaded:
 *
 *     models--owner--name/refs/<revision>        the commit a branch or tag stood at
 *     models--owner--name/blobs/<checksum>       contents, <checksum>.incomplete while they arrive
 *     models--owner--name/snapshots/<commit>/…   the repository's files, each the same file as a blob
 */

const PREFIX = 'models--';

export interface RepositoryPaths {
  readonly root: string;
  readonly refs: string;
  readonly blobs: string;
  readonly snapshots: string;
  /** Held by whoever changes the repository's directory. */
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

/** The repository a directory of the cache belongs to; null for other directories. */
export function repositoryOf(directory: string): string | null {
  if (!directory.startsWith(PREFIX)) return null;
  return directory.slice(PREFIX.length).replace('--', '/');
}

export const incomplete = (blob: string): string => `${blob}.incomplete`;

import { mkdir, stat, statfs } from 'node:fs/promises';
import path from 'node:path';
import type { Precision } from '../model/config/model-files.ts';
import { byteSize, type ProgressDisplay } from '../terminal/progress.ts';
import { repositoryPaths } from './cache.ts';
import { downloadBlob, partialFile } from './download.ts';
import { withFileLock } from './file-lock.ts';
import type { HubClient, HubFile } from './hub-client.ts';
import { HubError, withDiskErrors } from './hub-error.ts';
import type { FileIdentity, ListedFile, Listing } from './listing.ts';
import { placeInSnapshot, writeReference } from './snapshot.ts';
import { chooseVariant, precisionOf, type Variant, variantsOf } from './variants.ts';

export interface PullRequest {
  /** `owner/name`. */
  readonly repository: string;
  /** Branch, tag or commit. */
  readonly revision: string;
  /** Absent: the preferred one of the repository. */
  readonly variant?: string | undefined;
}

export interface PullContext {
  readonly client: HubClient;
  /** The directory with one directory per repository. */
  readonly cache: string;
  readonly progress: ProgressDisplay;
}

export interface PulledModel {
  readonly variant: string;
  readonly format: ModelFormat;
  /** Graphs or weights in the directory, as the repository names them. */
  readonly files: readonly string[];
  /** Null if the directory cannot hold other precisions. */
  readonly precision: Precision | null;
  readonly commit: string;
  /** The model directory. */
  readonly directory: string;
}

interface WantedFile {
  readonly file: HubFile;
  readonly identity: FileIdentity;
  /** Path of the blob in the cache. */
  readonly blob: string;
}

/**
 * Downloads the missing files of one variant into the cache. Pulls of the same repository run one after the other.
 * @throws HubError
 */
export async function pull(request: PullRequest, context: PullContext): Promise<PulledModel> {
  const { repository, revision } = request;
  const { client, cache, progress } = context;
  const listing = await client.listing(repository, revision);
  const paths = listing.files.map(({ path }) => path);
  const variants = variantsOf(paths);
  if (variants.length === 0) refusePickled(paths, repository);
  const variant = chooseVariant(variants, repository, request.variant);
  const { root, blobs, snapshots, refs, lock } = repositoryPaths(cache, repository);
  const snapshot = path.join(snapshots, listing.commit);
  const onWait = () => progress.note(`waiting for another pull of ${repository}`);
  const download = async () => {
    await mkdir(blobs, { recursive: true });
    const files: WantedFile[] = [];
    for (const { path: name, identity: listed } of filesOf(variant, listing)) {
      const file = { repository, revision: listing.commit, path: name };
      const identity = listed ?? (await client.identity(file));
      files.push({ file, identity, blob: path.join(blobs, identity.checksum) });
    }
    await requireSpace(files, root);
    context.onPlan?.(planOf(variant, files));
    for (const file of files) await fetchFile(file, snapshot, context);
    if (revision !== listing.commit) await writeReference(refs, revision, listing.commit);
  };
  await withFileLock(lock, { onWait, sleep: client.retries.sleep }, () => withDiskErrors(root, download));
  return {
    variant: variant.name,
    format: variant.format,
    files: variant.files,
    precision: precisionOf(variant),
    commit: listing.commit,
    directory: path.join(snapshot, variant.directory),
  };
}

/** Graphs come last, so that a snapshot with a graph is complete. */
function filesOf(variant: Variant, listing: Listing): ListedFile[] {
  const files = listing.files.filter(({ path }) => variant.files.includes(path));
  const isGraph = ({ path }: ListedFile) => path.endsWith('.onnx');
  return [...files.filter((file) => !isGraph(file)), ...files.filter(isGraph)];
}

async function fetchFile({ file, identity, blob }: WantedFile, snapshot: string, context: PullContext) {
  const { client } = context;
  if ((await sizeOf(blob)) !== identity.size) {
    const display = context.progress.start(file.path, identity.size);
    try {
      const onBytes = (bytes: number) => display.update(bytes);
      const open = (from: number) => client.open(file, from);
      const source = { name: file.path, retries: client.retries, open };
      await downloadBlob({ source, identity, blob, onBytes });
    } finally {
      display.stop();
    }
  }
  await placeInSnapshot(blob, path.join(snapshot, file.path));
}

/** @throws HubError if the missing bytes do not fit on the disk */
async function requireSpace(files: readonly WantedFile[], directory: string): Promise<void> {
  let missing = 0;
  for (const { blob, identity } of new Map(files.map((file) => [file.blob, file])).values()) {
    if ((await sizeOf(blob)) === identity.size) continue;
    missing += Math.max(0, identity.size - ((await sizeOf(partialFile(blob))) ?? 0));
  }
  const { bavail, bsize } = await statfs(directory);
  const free = bavail * bsize;
  if (missing <= free) return;
  throw new HubError(`the download needs ${byteSize(missing)}, but ${directory} has ${byteSize(free)} free`);
}

/** Size of a file in bytes; null if there is none. */
async function sizeOf(file: string): Promise<number | null> {
  const found = await stat(file).catch(() => null);
  return found?.isFile() ? found.size : null;
}

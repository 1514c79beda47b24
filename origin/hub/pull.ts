import { statfsSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
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
import { chooseVariant, precisionOf, type Variant } from './variants.ts';

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
  /** Null if the directory cannot hold other precisions. */
  readonly precision: Precision | null;
  readonly commit: string;
  /** The directory of the repository's files at this commit. */
  readonly snapshot: string;
  /** The model directory. */
  readonly directory: string;
}

interface WantedFile {
  readonly file: HubFile;
  readonly identity: FileIdentity;
  /** Path of the blob in the cache. */
  readonly blob: string;
}

/** The files of one variant at one commit, before anything is downloaded. */
export interface PullPlan {
  readonly repository: string;
  readonly revision: string;
  readonly commit: string;
  readonly variant: Variant;
  readonly files: readonly WantedFile[];
  /** Bytes that are not in the cache yet. */
  readonly missingBytes: number;
}

/**
 * Chooses the variant and finds what is missing in the cache.
 * @param choose Chooses among the paths of the repository
 * @throws HubError
 */
export async function planPull(
  { repository, revision, choose }: Omit<PullRequest, 'variant'> & { choose(files: string[]): Variant },
  { client, cache }: PullContext,
): Promise<PullPlan> {
  const listing = await client.listing(repository, revision);
  const variant = choose(listing.files.map(({ path }) => path));
  const { blobs } = repositoryPaths(cache, repository);
  const files: WantedFile[] = [];
  for (const { path: name, identity: listed } of filesOf(variant, listing)) {
    const file = { repository, revision: listing.commit, path: name };
    const identity = listed ?? (await client.identity(file));
    files.push({ file, identity, blob: path.join(blobs, identity.checksum) });
  }
  const { commit } = listing;
  return { repository, revision, commit, variant, files, missingBytes: await missingBytesOf(files) };
}

/**
 * Downloads the missing files of a plan into the cache. Pulls of the same repository run one after the other.
 * @param check called with the model directory once it has its JSON files, before the weights are fetched
 * @throws HubError; errors of `check` unchanged
 */
export async function pullFiles(
  plan: PullPlan,
  context: PullContext,
  check?: (directory: string) => void,
): Promise<PulledModel> {
  const { repository, revision, commit, variant, files } = plan;
  const { client, cache, progress } = context;
  const { root, blobs, snapshots, refs, lock } = repositoryPaths(cache, repository);
  const snapshot = path.join(snapshots, commit);
  const directory = path.join(snapshot, variant.directory);
  const onWait = () => progress.note(`waiting for another pull of ${repository}`);
  const download = async () => {
    await mkdir(blobs, { recursive: true });
    await requireSpace(files, root);
    const isJson = ({ file }: WantedFile) => file.path.endsWith('.json');
    for (const file of files.filter(isJson)) await fetchFile(file, snapshot, context);
    check?.(directory);
    for (const file of files.filter((one) => !isJson(one))) await fetchFile(file, snapshot, context);
    if (revision !== commit) await writeReference(refs, revision, commit);
  };
  await withFileLock(lock, { onWait, sleep: client.retries.sleep }, () => withDiskErrors(root, download));
  return { variant: variant.name, precision: precisionOf(variant), commit, snapshot, directory };
}

/** Downloads the missing files of one variant into the cache. @throws HubError */
export async function pull(request: PullRequest, context: PullContext): Promise<PulledModel> {
  const { repository, revision } = request;
  const choose = (files: string[]) => chooseVariant(files, repository, request.variant);
  return await pullFiles(await planPull({ repository, revision, choose }, context), context);
}

/** Graphs come last, so that a snapshot with a graph is complete. */
function filesOf(variant: Variant, listing: Listing): ListedFile[] {
  const files = listing.files.filter(({ path }) => variant.files.includes(path));
  return files.toSorted((a, b) => Number(a.path.endsWith('.onnx')) - Number(b.path.endsWith('.onnx')));
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

async function missingBytesOf(files: readonly WantedFile[]): Promise<number> {
  let missing = 0;
  for (const { blob, identity } of new Map(files.map((file) => [file.blob, file])).values()) {
    if ((await sizeOf(blob)) === identity.size) continue;
    missing += Math.max(0, identity.size - ((await sizeOf(partialFile(blob))) ?? 0));
  }
  return missing;
}

/** Free bytes of the disk of a directory. */
export function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}

/** @throws HubError if the missing bytes do not fit on the disk */
async function requireSpace(files: readonly WantedFile[], directory: string): Promise<void> {
  const [missing, free] = [await missingBytesOf(files), freeBytes(directory)];
  if (missing <= free) return;
  throw new HubError(`the download needs ${byteSize(missing)}, but ${directory} has ${byteSize(free)} free`);
}

/** Size of a file in bytes; null if there is none. */
async function sizeOf(file: string): Promise<number | null> {
  const found = await stat(file).catch(() => null);
  return found?.isFile() ? found.size : null;
}

import { mkdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { readShardNames, SAFETENSORS_INDEX } from '@continuo/export/checkpoint/safetensors.ts';
import type { Precision } from '../../model/config/model-files.ts';
import type { ProgressDisplay } from '../../terminal/progress.ts';
import { repositoryPaths } from './cache.ts';
import { downloadBlob, partialFile } from './download.ts';
import { withFileLock } from './file-lock.ts';
import type { HubClient, HubFile } from './hub-client.ts';
import { HubError, withDiskErrors } from './hub-error.ts';
import type { FileIdentity, ListedFile, Listing } from './listing.ts';
import { requireSpace } from './resources.ts';
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
interface PullPlan {
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
  context: PullContext,
): Promise<PullPlan> {
  const { client, cache } = context;
  const listing = await client.listing(repository, revision);
  const { commit } = listing;
  const chosen = choose(listing.files.map(({ path }) => path));
  const { blobs } = repositoryPaths(cache, repository);
  const wanted = async ({ path: name, identity: listed }: ListedFile): Promise<WantedFile> => {
    const file = { repository, revision: commit, path: name };
    const identity = listed ?? (await client.identity(file));
    return { file, identity, blob: path.join(blobs, identity.checksum) };
  };
  const index = filesOf(chosen, listing).find((file) => file.path === SAFETENSORS_INDEX);
  const shards = index === undefined ? [] : await fetchShardNames(await wanted(index), listing, context);
  const variant = { ...chosen, files: [...chosen.files, ...shards] };
  const files: WantedFile[] = [];
  for (const file of filesOf(variant, listing)) files.push(await wanted(file));
  return { repository, revision, commit, variant, files, missingBytes: await missingBytesOf(files) };
}

/** Fetches an index and returns the shards that it names. @throws HubError if the repository lacks one */
async function fetchShardNames(index: WantedFile, listing: Listing, context: PullContext): Promise<string[]> {
  const { repository } = index.file;
  const snapshot = path.join(repositoryPaths(context.cache, repository).snapshots, listing.commit);
  await changeCache(repository, context, () => fetchFile(index, snapshot, context));
  const shards = readShardNames(snapshot);
  const missing = shards.filter((shard) => !listing.files.some((file) => file.path === shard));
  if (missing.length === 0) return shards;
  throw new HubError(
    `${repository} lacks ${missing.length} of the shards that ${SAFETENSORS_INDEX} names: ${missing.slice(0, 3).join(', ')}`,
  );
}

/** Runs `work` on the directory of a repository; only one process does so at a time. */
async function changeCache(
  repository: string,
  { client, cache, progress }: PullContext,
  work: () => Promise<void>,
): Promise<void> {
  const { root, blobs, lock } = repositoryPaths(cache, repository);
  const onWait = () => progress.note(`waiting for another pull of ${repository}`);
  await withFileLock(lock, { onWait, sleep: client.retries.sleep }, () =>
    withDiskErrors(root, async () => {
      await mkdir(blobs, { recursive: true });
      await work();
    }),
  );
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
  const { root, snapshots, refs } = repositoryPaths(context.cache, repository);
  const snapshot = path.join(snapshots, commit);
  const directory = path.join(snapshot, variant.directory);
  await changeCache(repository, context, async () => {
    requireSpace('the download', await missingBytesOf(files), root);
    const isJson = ({ file }: WantedFile) => file.path.endsWith('.json');
    for (const file of files.filter(isJson)) await fetchFile(file, snapshot, context);
    check?.(directory);
    for (const file of files.filter((file) => !isJson(file))) await fetchFile(file, snapshot, context);
    if (revision !== commit) await writeReference(refs, revision, commit);
  });
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

/** Size of a file in bytes; null if there is none. */
async function sizeOf(file: string): Promise<number | null> {
  const stats = await stat(file).catch(() => null);
  return stats?.isFile() ? stats.size : null;
}

import { mkdir, stat, statfs } from 'node:fs/promises';
import path from 'node:path';
import type { Precision } from '../model/config/model-files.ts';
import { byteSize } from './byte-size.ts';
import { incomplete, repositoryPaths } from './cache-layout.ts';
import { onDisk } from './disk.ts';
import { downloadBlob } from './download.ts';
import { withFileLock } from './file-lock.ts';
import type { HubClient, RemoteFile } from './hub-client.ts';
import { HubError } from './hub-error.ts';
import type { FileIdentity, ListedFile } from './listing.ts';
import type { Progress } from './progress.ts';
import { placeInSnapshot, writeReference } from './snapshot.ts';
import { chooseVariant, precisionOf, variantsOf } from './variants.ts';

export interface PullRequest {
  /** `owner/name`. */
  readonly repository: string;
  /** Branch, tag or commit. */
  readonly revision: string;
  /** Absent = the preferred one of those there are. */
  readonly variant?: string | undefined;
}

export interface PullContext {
  readonly client: HubClient;
  /** The directory with one directory per repository. */
  readonly cache: string;
  readonly progress: Progress;
  readonly sleep: (ms: number) => Promise<void>;
}

export interface Pulled {
  readonly variant: string;
  /** Null where the directory can hold no other one. */
  readonly precision: Precision | null;
  readonly commit: string;
  /** The model directory. */
  readonly directory: string;
}

/** A file of the model and where its content will stand. */
interface Piece {
  readonly file: RemoteFile;
  readonly identity: FileIdentity;
  readonly blob: string;
}

/**
 * Brings the files of one variant into the cache; what is there already is not fetched again. Two pulls of the same
 * repository run one after the other.
 * @throws HubError
 */
export async function pull(request: PullRequest, context: PullContext): Promise<Pulled> {
  const { repository, revision } = request;
  const { client, cache, progress, sleep } = context;
  const listing = await client.listing(repository, revision);
  const paths = listing.files.map((file) => file.path);
  const variant = chooseVariant(variantsOf(paths), repository, request.variant);
  const { root, blobs, snapshots, refs, lock } = repositoryPaths(cache, repository);
  const snapshot = path.join(snapshots, listing.commit);
  const onWait = () => progress.note(`waiting for another pull of ${repository}`);
  await withFileLock(lock, { onWait, sleep }, async () => {
    await onDisk(blobs, () => mkdir(blobs, { recursive: true }));
    // Graphs last: a snapshot that has the graph has all of the model.
    const wanted = listing.files
      .filter((file) => variant.files.includes(file.path))
      .toSorted((one, other) => Number(isGraph(one)) - Number(isGraph(other)));
    const pieces: Piece[] = [];
    for (const listed of wanted) {
      const file = { repository, commit: listing.commit, path: listed.path };
      const identity = await identityOf(listed, file, client);
      pieces.push({ file, identity, blob: path.join(blobs, identity.checksum.hex) });
    }
    await requireSpace(pieces, root);
    for (const piece of pieces) await fetchPiece(piece, snapshot, context);
    if (revision !== listing.commit) await writeReference(refs, revision, listing.commit);
  });
  return {
    variant: variant.name,
    precision: precisionOf(variant),
    commit: listing.commit,
    directory: path.join(snapshot, variant.directory),
  };
}

const isGraph = ({ path }: ListedFile): boolean => path.endsWith('.onnx');

async function identityOf(listed: ListedFile, file: RemoteFile, client: HubClient): Promise<FileIdentity> {
  return listed.identity ?? (await client.identity(file));
}

async function fetchPiece({ file, identity, blob }: Piece, snapshot: string, context: PullContext) {
  const { client, progress } = context;
  if ((await bytesAt(blob)) !== identity.size) {
    const bar = progress.start(file.path, identity.size);
    try {
      await downloadBlob({ client, file, identity, target: blob, onBytes: (bytes) => bar.update(bytes) });
    } finally {
      bar.stop();
    }
  }
  await placeInSnapshot(blob, path.join(snapshot, file.path));
}

/** @throws HubError when what is missing cannot fit on the disk */
async function requireSpace(pieces: readonly Piece[], root: string): Promise<void> {
  let needed = 0;
  for (const { blob, identity } of new Map(pieces.map((piece) => [piece.blob, piece])).values()) {
    if ((await bytesAt(blob)) === identity.size) continue;
    needed += Math.max(0, identity.size - ((await bytesAt(incomplete(blob))) ?? 0));
  }
  const { bavail, bsize } = await onDisk(root, () => statfs(root));
  if (needed > bavail * bsize) {
    throw new HubError(
      `${byteSize(needed)} are missing, but ${root} has room for ${byteSize(bavail * bsize)}`,
    );
  }
}

/** Size of a file; null when there is none. */
async function bytesAt(file: string): Promise<number | null> {
  const found = await stat(file).catch(() => null);
  return found?.isFile() ? found.size : null;
}

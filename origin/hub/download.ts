import type { Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { incomplete } from './cache-layout.ts';
import { contentHash } from './checksum.ts';
import { onDisk } from './disk.ts';
import type { Download, HubClient, RemoteFile } from './hub-client.ts';
import { HubError, TransientError } from './hub-error.ts';
import type { FileIdentity } from './listing.ts';
import { withPatience } from './retries.ts';

export interface BlobTransfer {
  readonly client: HubClient;
  readonly file: RemoteFile;
  readonly identity: FileIdentity;
  /** Where the blob will stand; what has arrived waits beside it under `.incomplete`. */
  readonly target: string;
  /** Bytes of the file that are on the disk; falls when a server starts again from the beginning. */
  readonly onBytes: (received: number) => void;
}

/**
 * Brings one blob into the cache, going on where an earlier attempt or run ended. The blob appears under its name only
 * when it is whole and its checksum is right.
 * @throws HubError
 */
export async function downloadBlob(transfer: BlobTransfer): Promise<void> {
  const partial = incomplete(transfer.target);
  const resumed = await arrive(transfer, partial);
  // What an earlier run left may have been damaged by whatever ended it.
  if (resumed === 'damaged start') await arrive(transfer, partial);
  await onDisk(transfer.target, () => rename(partial, transfer.target));
}

/** @throws HubError when bytes that all arrived in this run are not those the hub promised */
async function arrive(transfer: BlobTransfer, partial: string): Promise<'whole' | 'damaged start'> {
  const { client, identity, file } = transfer;
  const handle = await onDisk(partial, () => open(partial, 'a'));
  try {
    const arrival = new Arrival(handle, partial, transfer);
    const resumedAt = await arrival.takeUp();
    await withPatience(client.patience, (progressed) => arrival.goOn(progressed));
    if (arrival.digest() === identity.checksum.hex) {
      await onDisk(partial, () => handle.sync());
      return 'whole';
    }
    await rm(partial, { force: true });
    if (resumedAt > 0) return 'damaged start';
    throw new HubError(`${file.path}: the checksum is wrong; nothing of it was kept`);
  } finally {
    await handle.close();
  }
}

/** A partial file, how far it has come, and the hash of just that. */
class Arrival {
  readonly #handle: FileHandle;
  readonly #path: string;
  readonly #transfer: BlobTransfer;
  #received = 0;
  /** The most it has been: what a server sends again from the beginning is no progress. */
  #furthest = 0;
  #hash: Hash;

  constructor(handle: FileHandle, path: string, transfer: BlobTransfer) {
    this.#handle = handle;
    this.#path = path;
    this.#transfer = transfer;
    this.#hash = contentHash(transfer.identity);
  }

  /** Hashes what an earlier run left. Returns its size. */
  async takeUp(): Promise<number> {
    const { size } = await onDisk(this.#path, () => this.#handle.stat());
    if (size > this.#transfer.identity.size) {
      await this.#startAgain();
      return 0;
    }
    if (size > 0) for await (const chunk of createReadStream(this.#path)) this.#hash.update(chunk as Buffer);
    this.#received = size;
    this.#furthest = size;
    this.#transfer.onBytes(size);
    return size;
  }

  /** One connection's worth. @throws TransientError when it ended early */
  async goOn(progressed: () => void): Promise<void> {
    const { client, file, identity } = this.#transfer;
    if (this.#received === identity.size) return;
    const download = await client.open(file, this.#received);
    if (!continues(download, this.#received)) await this.#startAgain();
    if (download.status === 416) {
      await download.discard();
      throw new TransientError(`${file.path} cannot be resumed`);
    }
    for await (const chunk of download.chunks) {
      await this.#append(chunk);
      if (this.#received > this.#furthest) progressed();
      this.#furthest = Math.max(this.#furthest, this.#received);
    }
    if (this.#received < identity.size) throw new TransientError(`${file.path} ended early`);
  }

  digest(): string {
    return this.#hash.digest('hex');
  }

  async #append(chunk: Uint8Array): Promise<void> {
    const { file, identity, onBytes } = this.#transfer;
    if (this.#received + chunk.length > identity.size) {
      await this.#startAgain();
      throw new HubError(`${file.path}: the server sends more than the ${identity.size} bytes announced`);
    }
    await onDisk(this.#path, () => this.#handle.appendFile(chunk));
    this.#hash.update(chunk);
    this.#received += chunk.length;
    onBytes(this.#received);
  }

  async #startAgain(): Promise<void> {
    await onDisk(this.#path, () => this.#handle.truncate(0));
    this.#hash = contentHash(this.#transfer.identity);
    this.#received = 0;
    this.#transfer.onBytes(0);
  }
}

/** Whether the answer's first byte is byte `from` of the file. */
function continues({ status, headers }: Download, from: number): boolean {
  if (from === 0) return true;
  return status === 206 && headers.get('content-range')?.startsWith(`bytes ${from}-`) === true;
}

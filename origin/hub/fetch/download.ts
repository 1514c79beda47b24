import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import type { HttpResponse } from './http.ts';
import { HubError, TransientHubError } from './hub-error.ts';
import type { FileIdentity } from './listing.ts';
import { type RetryOptions, withRetries } from './retries.ts';

/** A file on a server. */
export interface BlobSource {
  /** Names the file in messages. */
  readonly name: string;
  readonly retries: RetryOptions;
  /** Requests the file from a byte on, once. Resolves with status 206, 200 (the whole file) or 416. */
  readonly open: (from: number) => Promise<HttpResponse>;
}

interface BlobDownload {
  readonly source: BlobSource;
  readonly identity: FileIdentity;
  /** Path of the complete blob. */
  readonly blob: string;
  /** Called with the bytes on disk; the number falls if a server starts again at byte 0. */
  readonly onBytes: (bytes: number) => void;
}

/** Where a blob's bytes are collected; later runs resume there. */
export const partialFile = (blob: string): string => `${blob}.incomplete`;

/**
 * Downloads one blob and resumes what an earlier attempt or run left. The blob gets its name only when it is
 * complete and its checksum matches.
 * @throws HubError; errors of the file system
 */
export async function downloadBlob(download: BlobDownload): Promise<void> {
  const { source, identity, blob } = download;
  const partial = partialFile(blob);
  for (;;) {
    const { resumedAt, checksum } = await receiveAll(download, partial);
    if (checksum === identity.checksum) break;
    await rm(partial);
    // Bytes of an earlier run may be damaged, so they get a second chance from byte 0.
    if (resumedAt === 0) throw new HubError(`${source.name}: wrong checksum; the download was deleted`);
  }
  await rename(partial, blob);
}

/** Appends to the partial file until it has the announced size. */
async function receiveAll({ source, identity, onBytes }: BlobDownload, partial: string) {
  await using handle = await open(partial, 'a');
  let received = 0;
  let hash = contentHash(identity);
  const restart = async () => {
    await handle.truncate();
    received = 0;
    hash = contentHash(identity);
  };
  received = (await handle.stat()).size;
  if (received > identity.size) await restart();
  if (received > 0) for await (const chunk of createReadStream(partial)) hash.update(chunk as Buffer);
  const resumedAt = received;
  // Bytes that a server sends again from byte 0 are not progress.
  let furthest = received;
  onBytes(received);
  await withRetries(source.retries, async (onProgress) => {
    if (received === identity.size) return;
    const response = await source.open(received);
    if (!resumesAt(received, response)) await restart();
    if (response.status === 416) throw new TransientHubError(`${source.name} cannot be resumed`);
    for await (const chunk of response.chunks) {
      if (received + chunk.length > identity.size) {
        await restart();
        throw new HubError(`${source.name}: the server sends more than the announced ${identity.size} bytes`);
      }
      await handle.appendFile(chunk);
      hash.update(chunk);
      received += chunk.length;
      onBytes(received);
      if (received > furthest) onProgress();
      furthest = Math.max(furthest, received);
    }
    if (received < identity.size) throw new TransientHubError(`${source.name} ended early`);
  });
  await handle.sync();
  return { resumedAt, checksum: hash.digest('hex') };
}

function resumesAt(byte: number, { status, headers }: HttpResponse): boolean {
  if (byte === 0) return true;
  return status === 206 && headers.get('content-range')?.startsWith(`bytes ${byte}-`) === true;
}

function contentHash({ size, checksum }: FileIdentity): Hash {
  return checksum.length === 64 ? createHash('sha256') : createHash('sha1').update(`blob ${size}\0`);
}

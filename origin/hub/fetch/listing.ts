import * as z from 'zod';
import { HubError } from './hub-error.ts';
import { requireFilePath } from './names.ts';

const sha1 = z.string().regex(/^[0-9a-f]{40}$/);
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const size = z.int().nonnegative();

/** The answer of GET /api/models/{repository}/revision/{revision}?blobs=true. */
const modelInfo = z.object({
  sha: sha1,
  siblings: z.array(
    z.object({
      rfilename: z.string(),
      size: size.nullish(),
      blobId: sha1.nullish(),
      lfs: z.object({ sha256, size: size.nullish() }).nullish(),
    }),
  ),
});

export interface FileIdentity {
  /** Bytes. */
  readonly size: number;
  /**
   * Lower-case hexadecimal and the name of the blob in the cache. 64 digits: SHA-256 of the content. 40
   * digits: git's SHA-1 of "blob <size>\0<content>".
   */
  readonly checksum: string;
}

export interface ListedFile {
  readonly path: string;
  /** Null if the hub lists only names; the headers of the file then have size and checksum. */
  readonly identity: FileIdentity | null;
}

export interface Listing {
  /** 40 hexadecimal digits. */
  readonly commit: string;
  readonly files: readonly ListedFile[];
}

/** @throws HubError if the answer is not a listing or has an unsafe path */
export function readListing(value: unknown): Listing {
  const parsed = modelInfo.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new HubError(
      `the hub's answer is not a model listing: ${issue?.path.join('.')}: ${issue?.message}`,
    );
  }
  const { sha, siblings } = parsed.data;
  const files = siblings.map(({ rfilename, size, blobId, lfs }) => ({
    path: requireFilePath(rfilename),
    identity: fileIdentity(lfs?.size ?? size, lfs?.sha256 ?? blobId),
  }));
  return { commit: sha, files };
}

/**
 * @param etag Checksum, or a header ETag or X-Linked-Etag that holds one
 * @returns null if the size or a known checksum is missing
 */
export function fileIdentity(
  size: number | null | undefined,
  etag: string | null | undefined,
): FileIdentity | null {
  const checksum = etag?.replace(/^W\//, '').replaceAll('"', '');
  if (checksum === undefined || typeof size !== 'number' || !Number.isSafeInteger(size)) return null;
  return sha256.safeParse(checksum).success || sha1.safeParse(checksum).success ? { size, checksum } : null;
}

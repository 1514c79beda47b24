import * as z from 'zod';
import { HubError } from './hub-error.ts';
import { requireInside } from './names.ts';

/** What a hub says about a repository at one revision. */

const sha1 = z.string().regex(/^[0-9a-f]{40}$/);
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const size = z.int().nonnegative();

const answer = z.object({
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

/** How a file's content is known: large files by their SHA-256, others by git's SHA-1 of "blob <size>\0<content>". */
export interface Checksum {
  readonly kind: 'sha256' | 'git';
  /** In lower-case hexadecimal; also the name of the file's blob in the cache. */
  readonly hex: string;
}

export interface FileIdentity {
  /** Bytes. */
  readonly size: number;
  readonly checksum: Checksum;
}

export interface ListedFile {
  readonly path: string;
  /** Null where the hub lists names alone; the file's own headers tell it then. */
  readonly identity: FileIdentity | null;
}

export interface Listing {
  /** The commit, 40 hexadecimal digits. */
  readonly commit: string;
  readonly files: readonly ListedFile[];
}

/** @throws HubError for an answer that is no listing, or that names files outside the repository */
export function readListing(value: unknown): Listing {
  const parsed = answer.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new HubError(
      `the hub's answer is not a model listing: ${issue?.path.join('.')}: ${issue?.message}`,
    );
  }
  const { sha, siblings } = parsed.data;
  const files = siblings.map(({ rfilename, size, blobId, lfs }) => ({
    path: requireInside(rfilename),
    identity: identityOf(lfs?.size ?? size, lfs?.sha256 ?? blobId),
  }));
  return { commit: sha, files };
}

/**
 * @param etag As in the headers ETag and X-Linked-Etag; other digests than the two known ones give null
 */
export function identityOf(
  size: number | null | undefined,
  etag: string | null | undefined,
): FileIdentity | null {
  const hex = etag?.replace(/^W\//, '').replaceAll('"', '');
  if (hex === undefined || typeof size !== 'number' || !Number.isSafeInteger(size)) return null;
  if (sha256.safeParse(hex).success) return { size, checksum: { kind: 'sha256', hex } };
  return sha1.safeParse(hex).success ? { size, checksum: { kind: 'git', hex } } : null;
}

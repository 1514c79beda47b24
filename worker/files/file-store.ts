import type { FileObject } from '@continuo/shared/batch.ts';
import { ApiError } from '@continuo/shared/errors.ts';

/** The objects of tenants in R2. An object holds all of a file, so nothing can disagree. */

/** Inputs and results of batches, the records of batches, and unfinished files. */
type Kind = 'files' | 'batches' | 'uploads';

/** No id of an object is so long. R2 refuses long keys, and no object has what is left of a longer id. */
const MAX_ID_LENGTH = 80;

/** Returns an id as a part of a key. It cannot lead out of its folder. */
export const keyPart = (id: string): string => encodeURIComponent(id.slice(0, MAX_ID_LENGTH).toWellFormed());

/** Returns the key of an object, or the beginning of the keys of all. */
export const objectKey = (tenantId: string, kind: Kind, id = ''): string =>
  `${keyPart(tenantId)}/${kind}/${keyPart(id)}`;

const MAX_TIME = 2 ** 48 - 1;

/** Returns a new id. Ids sort from new to old, because R2 lists keys in ascending order. */
export const newId = (prefix: string, now: number, randomHex: (bytes: number) => string): string =>
  `${prefix}${(MAX_TIME - now).toString(16).padStart(12, '0')}${randomHex(10)}`;

/** What an object of a file says about it. */
export const fileOptions = (
  { filename, purpose }: Pick<FileObject, 'filename' | 'purpose'>,
  now: number,
): R2MultipartOptions & R2PutOptions => ({
  httpMetadata: { contentType: 'application/jsonl' },
  customMetadata: {
    filename: encodeURIComponent(filename),
    purpose,
    created: String(Math.floor(now / 1_000)),
  },
});

export const idOf = ({ key }: Pick<R2Object, 'key'>): string => key.slice(key.lastIndexOf('/') + 1);

export function fileOf({ key, size, customMetadata = {} }: R2Object): FileObject {
  const { filename = '', purpose, created } = customMetadata;
  return {
    id: idOf({ key }),
    object: 'file',
    bytes: size,
    created_at: Number(created),
    filename: decodeURIComponent(filename),
    purpose: purpose === 'batch_output' ? purpose : 'batch',
    status: 'processed',
  };
}

/** Returns all objects of a tenant in the order of their ids, newest first. */
export const listObjects = (bucket: R2Bucket, tenantId: string, kind: Kind): Promise<R2Object[]> =>
  listUnder(bucket, objectKey(tenantId, kind));

/** Returns all objects whose keys have this beginning, in the order of their keys. */
export async function listUnder(bucket: R2Bucket, prefix: string): Promise<R2Object[]> {
  const objects: R2Object[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await bucket.list({ prefix, include: ['customMetadata'], ...(cursor && { cursor }) });
    objects.push(...page.objects);
    if (!page.truncated) return objects;
    cursor = page.cursor;
  }
}

/** R2 deletes at most this many objects per call. */
const DELETED_OBJECTS = 1_000;

export async function deleteObjects(
  bucket: R2Bucket,
  objects: readonly Pick<R2Object, 'key'>[],
): Promise<void> {
  for (let at = 0; at < objects.length; at += DELETED_OBJECTS)
    await bucket.delete(objects.slice(at, at + DELETED_OBJECTS).map(({ key }) => key));
}

export async function deleteAllObjects(bucket: R2Bucket, tenantId: string): Promise<void> {
  const kinds: readonly Kind[] = ['files', 'batches', 'uploads'];
  const objects = await Promise.all(kinds.map((kind) => listObjects(bucket, tenantId, kind)));
  await deleteObjects(bucket, objects.flat());
}

export const noSuchFile = (id: string, param = 'id'): ApiError =>
  new ApiError('not_found', `No such File object: ${id.slice(0, 100)}`, { param });

export const tooMany = (message: string): ApiError =>
  new ApiError('rate_limit_exceeded', message, { headers: { 'retry-after': '60' } });

import { type Upload, uploadObject } from '@continuo/shared/batch.ts';
import { deleteObjects, idOf, keyPart, listObjects, listUnder, objectKey } from './file-store.ts';

/** Uploads in parts, in R2: each has a folder with its record and its parts. */

/** Seconds until an upload expires. */
export const LIFETIME_SECONDS = 3_600;
const RECORD = 'upload';

export interface StoredUpload {
  readonly upload: Upload;
  /** Version of the record. */
  readonly etag: string;
}

export interface StoredPart {
  readonly key: string;
  /** Bytes. */
  readonly size: number;
}

const folderOf = (tenantId: string, id: string): string => `${objectKey(tenantId, 'uploads', id)}/`;

export const partKey = (tenantId: string, id: string, part: string): string =>
  folderOf(tenantId, id) + keyPart(part);

/**
 * Writes the record of an upload.
 * @param etag version that it replaces; null if there is none
 * @returns false if the record has another version
 */
export async function putUpload(
  bucket: R2Bucket,
  tenantId: string,
  upload: Upload,
  etag: string | null,
): Promise<boolean> {
  const onlyIf = etag === null ? {} : { onlyIf: { etagMatches: etag } };
  const options = { customMetadata: { status: upload.status }, ...onlyIf };
  return (await bucket.put(partKey(tenantId, upload.id, RECORD), JSON.stringify(upload), options)) !== null;
}

/** Returns an upload as it is now; null if the tenant has no such upload. */
export async function getUpload(
  bucket: R2Bucket,
  tenantId: string,
  id: string,
  now: number,
): Promise<StoredUpload | null> {
  const object = await bucket.get(partKey(tenantId, id, RECORD));
  if (object === null) return null;
  const upload = uploadObject.parse(await object.json());
  const isExpired = upload.status === 'pending' && now >= 1_000 * upload.expires_at;
  return { upload: isExpired ? { ...upload, status: 'expired' } : upload, etag: object.etag };
}

/** Returns the parts of an upload. */
export async function listParts(bucket: R2Bucket, tenantId: string, id: string): Promise<StoredPart[]> {
  const objects = await listUnder(bucket, folderOf(tenantId, id));
  return objects.filter((object) => idOf(object) !== RECORD);
}

/** Deletes useless rests of uploads. Returns the ids of the others, and how many are pending. */
export async function listUploads(
  bucket: R2Bucket,
  tenantId: string,
  now: number,
): Promise<{ readonly listed: readonly string[]; readonly counted: number }> {
  const objects = await listObjects(bucket, tenantId, 'uploads');
  // A part may be younger than its record, so it is kept a lifetime longer.
  const isOld = ({ uploaded }: R2Object) => now - uploaded.getTime() > 1_000 * LIFETIME_SECONDS;
  await deleteObjects(bucket, objects.filter(isOld));
  const records = objects.filter((object) => !isOld(object) && idOf(object) === RECORD);
  return {
    listed: records.map(({ key }) => key.split('/').at(-2)!),
    counted: records.filter(({ customMetadata }) => customMetadata?.status === 'pending').length,
  };
}

import {
  type FileObject,
  partForm,
  type Upload,
  uploadCompletion,
  uploadObject,
  uploadPart,
  uploadRequest,
} from '@continuo/shared/batch.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { toHex } from '@continuo/shared/signing.ts';
import type * as z from 'zod';
import { parseRequest } from '../dialects/parse-request.ts';
import { readJsonObject } from '../http/request-body.ts';
import type { RequestContext } from '../http/request-context.ts';
import { type Operation, type OperationInput, operation } from '../operations/operation.ts';
import { deleteObjects, fileOf, fileOptions, newId, objectKey, tooMany } from './file-store.ts';
import { checkFileCount, checkFileName, takeFilePlace } from './files.ts';
import { PartedObject } from './parted-object.ts';
import { takePlace } from './place.ts';
import { receiveForm } from './received-form.ts';
import {
  getUpload,
  LIFETIME_SECONDS,
  listParts,
  listUploads,
  partKey,
  putUpload,
  type StoredPart,
  type StoredUpload,
} from './upload-store.ts';

/** Files in parts, each in a request of its own, because the platform limits the body of a request. */

const MAX_PART_BYTES = 64 * 1024 * 1024;
/** Pending uploads of one tenant. */
const MAX_PENDING = 20;

async function createUpload(
  { request, principal: { tenant } }: OperationInput,
  context: RequestContext,
): Promise<Upload> {
  const { filename, bytes } = parseRequest(uploadRequest, await readJsonObject(request, context));
  checkFileName(filename);
  await checkFileCount(context, tenant.id);
  const now = context.now();
  const createdAt = Math.floor(now / 1_000);
  const upload: Upload = {
    id: newId('upload_', now, context.randomHex),
    object: 'upload',
    bytes,
    created_at: createdAt,
    expires_at: createdAt + LIFETIME_SECONDS,
    filename,
    purpose: 'batch',
    status: 'pending',
    file: null,
  };
  const { FILES } = context.env;
  const place = { kind: 'uploads', id: upload.id, max: MAX_PENDING };
  const pending = await listUploads(FILES, tenant.id, now);
  if (!(await takePlace(context, tenant.id, { ...place, ...pending })))
    throw tooMany(`You have ${MAX_PENDING} pending uploads. Complete or cancel one.`);
  await putUpload(FILES, tenant.id, upload, null);
  return upload;
}

/** @throws ApiError 404 if the tenant has no such upload */
async function findUpload({ env, now }: RequestContext, tenantId: string, id: string): Promise<StoredUpload> {
  const stored = await getUpload(env.FILES, tenantId, id, now());
  if (stored !== null) return stored;
  throw new ApiError('not_found', `No such Upload object: ${id.slice(0, 100)}`, { param: 'id' });
}

/** @throws ApiError 409 */
function checkPending({ status }: Upload): void {
  if (status === 'pending') return;
  throw new ApiError('conflict', `The upload is ${status}. Create another one.`, {
    headers: { 'x-should-retry': 'false' },
  });
}

async function addPart(
  { request, id, principal: { tenant } }: OperationInput,
  context: RequestContext,
): Promise<z.infer<typeof uploadPart>> {
  const { upload } = await findUpload(context, tenant.id, id);
  checkPending(upload);
  const { FILES } = context.env;
  const stored = async () => bytesOf(await listParts(FILES, tenant.id, upload.id));
  // Repeated parts may take as much room as the file itself.
  const maxBytes = 2 * upload.bytes;
  const rest = Math.max(0, maxBytes - (await stored()));
  const now = context.now();
  const part: z.infer<typeof uploadPart> = {
    id: newId('part_', now, context.randomHex),
    object: 'upload.part',
    created_at: Math.floor(now / 1_000),
    upload_id: upload.id,
  };
  const { object } = await receiveForm(request, context, {
    field: 'data',
    maxBytes: Math.min(MAX_PART_BYTES, rest),
    open: () => new PartedObject(FILES, partKey(tenant.id, upload.id, part.id), {}),
  });
  const { key } = await object.complete();
  // Parts that arrive together have not seen each other.
  if ((await stored()) > maxBytes) {
    await FILES.delete(key);
    const message = `Invalid 'data': the parts of the upload would have more than ${maxBytes} bytes.`;
    throw new ApiError('request_too_large', message, { param: 'data' });
  }
  return part;
}

const bytesOf = (parts: readonly StoredPart[]): number => parts.reduce((sum, { size }) => sum + size, 0);

/** Makes a file of the parts. Repeated, it returns the same file. */
async function completeUpload(
  { request, id, principal: { tenant } }: OperationInput,
  context: RequestContext,
): Promise<Upload> {
  const asked = parseRequest(uploadCompletion, await readJsonObject(request, context));
  const { upload, etag } = await findUpload(context, tenant.id, id);
  if (upload.status === 'completed') return upload;
  checkPending(upload);
  await checkFileCount(context, tenant.id);
  const { FILES } = context.env;
  const parts = await listParts(FILES, tenant.id, upload.id);
  const chosen = chooseParts(parts, asked.part_ids, upload, (part) => partKey(tenant.id, upload.id, part));
  const file = await joinParts(context, tenant.id, upload, chosen, asked.md5 ?? null);
  const completed: Upload = { ...upload, status: 'completed', file };
  if (!(await putUpload(FILES, tenant.id, completed, etag))) {
    // Another request has completed or cancelled it in the meantime.
    await FILES.delete(objectKey(tenant.id, 'files', file.id));
    const { upload: current } = await findUpload(context, tenant.id, id);
    if (current.status !== 'completed') checkPending(current);
    return current;
  }
  await deleteObjects(FILES, parts);
  return completed;
}

/** @throws ApiError 400 for an unknown part, or for parts that are not the whole file */
function chooseParts(
  parts: readonly StoredPart[],
  ids: readonly string[],
  { bytes }: Upload,
  keyOf: (id: string) => string,
): readonly StoredPart[] {
  const byKey = new Map(parts.map((part) => [part.key, part]));
  const chosen = ids.map((id, index) => {
    const part = byKey.get(keyOf(id));
    if (part !== undefined) return part;
    const message = `Invalid 'part_ids[${index}]': the upload has no part '${id.slice(0, 100)}'.`;
    throw new ApiError('invalid_value', message, { param: `part_ids[${index}]` });
  });
  if (bytesOf(chosen) === bytes) return chosen;
  const message = `Invalid 'part_ids': the parts have ${bytesOf(chosen)} bytes, but the upload was created for ${bytes}.`;
  throw new ApiError('invalid_value', message, { param: 'part_ids' });
}

/** Writes the parts as one file. @throws ApiError 400 if its MD5 is another one */
async function joinParts(
  context: RequestContext,
  tenantId: string,
  { filename }: Upload,
  parts: readonly StoredPart[],
  md5: string | null,
): Promise<FileObject> {
  const { FILES } = context.env;
  const at = context.now();
  const id = newId('file-', at, context.randomHex);
  const key = objectKey(tenantId, 'files', id);
  const object = new PartedObject(FILES, key, fileOptions({ filename, purpose: 'batch' }, at));
  const digest = new crypto.DigestStream('MD5');
  const writer = digest.getWriter();
  try {
    for (const part of parts) {
      const stored = await FILES.get(part.key);
      if (stored === null) throw new ApiError('conflict', 'The upload has just been completed or cancelled.');
      for await (const bytes of stored.body) {
        await writer.write(bytes);
        await object.write(bytes);
      }
    }
    await writer.close();
    if (md5 !== null && toHex(new Uint8Array(await digest.digest)) !== md5.toLowerCase()) {
      const message = "Invalid 'md5': the file has another one.";
      throw new ApiError('invalid_value', message, { param: 'md5' });
    }
    await takeFilePlace(context, tenantId, id);
    return fileOf(await object.complete());
  } catch (thrown) {
    await object.abort();
    throw thrown;
  }
}

async function cancelUpload(
  { id, principal: { tenant } }: OperationInput,
  context: RequestContext,
): Promise<Upload> {
  const { upload, etag } = await findUpload(context, tenant.id, id);
  if (upload.status === 'cancelled') return upload;
  checkPending(upload);
  const { FILES } = context.env;
  const cancelled: Upload = { ...upload, status: 'cancelled' };
  if (!(await putUpload(FILES, tenant.id, cancelled, etag))) {
    checkPending((await findUpload(context, tenant.id, id)).upload);
  }
  await deleteObjects(FILES, await listParts(FILES, tenant.id, upload.id));
  return cancelled;
}

export const UPLOAD_OPERATIONS: readonly Operation[] = [
  operation('POST', '/v1/uploads', {
    id: 'createUpload',
    summary: 'Start a file that is sent in parts.',
    scope: 'completions',
    ownBody: uploadRequest,
    response: uploadObject,
    errors: ['integer_above_max_value', 'integer_below_min_value'],
    run: createUpload,
  }),
  operation('POST', '/v1/uploads/{id}/parts', {
    id: 'addUploadPart',
    summary: 'Add a part.',
    scope: 'completions',
    form: partForm,
    response: uploadPart,
    errors: ['conflict'],
    run: addPart,
  }),
  operation('POST', '/v1/uploads/{id}/complete', {
    id: 'completeUpload',
    summary: 'Make a file of the parts.',
    scope: 'completions',
    ownBody: uploadCompletion,
    response: uploadObject,
    errors: ['conflict'],
    run: completeUpload,
  }),
  operation('POST', '/v1/uploads/{id}/cancel', {
    id: 'cancelUpload',
    summary: 'Cancel an upload and delete its parts.',
    scope: 'completions',
    response: uploadObject,
    errors: ['conflict'],
    run: cancelUpload,
  }),
];

import { type FileObject, fileFields, MAX_FILE_BYTES } from '@continuo/shared/batch.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { queryInteger } from '@continuo/shared/json-fields.ts';
import * as z from 'zod';
import { authenticate } from '../auth/auth.ts';
import { parseRequest } from '../dialects/parse-request.ts';
import type { RequestContext } from '../http/request-context.ts';
import { jsonResponse } from '../http/responses.ts';
import type { RouteHandler } from '../http/router.ts';
import { fileOf, fileOptions, idOf, listObjects, newId, noSuchFile, objectKey } from './file-store.ts';
import { PartedObject } from './parted-object.ts';
import { takePlace } from './place.ts';
import { receiveForm } from './received-form.ts';

/** Files of one tenant. */
const MAX_FILES = 1_000;
const MAX_NAME_LENGTH = 255;

/** Returns a file's name. @throws ApiError 400 for a name that is a path or contains control characters */
export function checkFileName(name: string): string {
  const valid =
    name !== '' && [...name].length <= MAX_NAME_LENGTH && !/[/\\\p{Cc}]/u.test(name) && !/^\.+$/.test(name);
  if (valid && name.isWellFormed()) return name;
  const message = `Invalid 'filename': expected a name of 1 to ${MAX_NAME_LENGTH} characters without path separators and control characters.`;
  throw new ApiError('invalid_value', message, { param: 'filename' });
}

const tooManyFiles = (): ApiError =>
  new ApiError('invalid_value', `You have ${MAX_FILES} files. Delete some of them first.`, { param: 'file' });

/** Refuses a file before it is received. @throws ApiError 400 if the tenant has too many files */
export async function checkFileCount({ env }: RequestContext, tenantId: string): Promise<void> {
  if ((await listObjects(env.FILES, tenantId, 'files')).length >= MAX_FILES) throw tooManyFiles();
}

/** Takes the place of a file that is about to appear. @throws ApiError 400 if the tenant has too many files */
export async function takeFilePlace(context: RequestContext, tenantId: string, id: string): Promise<void> {
  const listed = (await listObjects(context.env.FILES, tenantId, 'files')).map(idOf);
  const place = { kind: 'files', id, listed, counted: listed.length, max: MAX_FILES };
  if (!(await takePlace(context, tenantId, place))) throw tooManyFiles();
}

/** POST /v1/files */
export const uploadFile: RouteHandler = async (request, context) => {
  const { tenant } = await authenticate(request, context, 'completions');
  await checkFileCount(context, tenant.id);
  const now = context.now();
  const id = newId('file-', now, context.randomHex);
  const key = objectKey(tenant.id, 'files', id);
  const open = (name: string) =>
    new PartedObject(
      context.env.FILES,
      key,
      fileOptions({ filename: checkFileName(name), purpose: 'batch' }, now),
    );
  const { fields, object } = await receiveForm(request, context, {
    field: 'file',
    maxBytes: MAX_FILE_BYTES,
    open,
  });
  try {
    parseRequest(fileFields, Object.fromEntries(fields));
    await takeFilePlace(context, tenant.id, id);
    return jsonResponse(fileOf(await object.complete()));
  } catch (thrown) {
    await object.abort();
    throw thrown;
  }
};

const listQuery = z.object({
  after: z.string().optional(),
  limit: queryInteger(1, 10_000).default(10_000),
  order: z.enum(['asc', 'desc']).default('desc'),
  purpose: z.enum(['batch', 'batch_output']).optional(),
});

interface PageQuery {
  readonly after?: string | undefined;
  readonly limit: number;
  readonly order?: 'asc' | 'desc';
}

/** Returns the part of a list that a query asks for: what follows an id, also if its object is gone. */
export function pageOf<T extends { readonly id: string }>(items: readonly T[], query: PageQuery) {
  const { after, limit, order } = query;
  const follows = ({ id }: T) => after === undefined || (order === 'asc' ? id < after : id > after);
  // Ids sort from new to old.
  const rest = (order === 'asc' ? items.toReversed() : items).filter(follows);
  const data = rest.slice(0, limit);
  const [first_id, last_id] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
  return { object: 'list', data, first_id, last_id, has_more: rest.length > limit };
}

/** GET /v1/files */
export const listFiles: RouteHandler = async (request, context) => {
  const { tenant } = await authenticate(request, context, 'completions');
  const query = parseRequest(listQuery, Object.fromEntries(new URL(request.url).searchParams));
  const files = (await listObjects(context.env.FILES, tenant.id, 'files')).map(fileOf);
  const wanted = files.filter(({ purpose }) => query.purpose === undefined || purpose === query.purpose);
  return jsonResponse(pageOf(wanted, query));
};

/** GET /v1/files/{id} */
export const showFile: RouteHandler = async (request, context, id) => {
  const { tenant } = await authenticate(request, context, 'completions');
  return jsonResponse(await findFile(context, tenant.id, id));
};

/** @throws ApiError 404 if the tenant has no such file */
export async function findFile(
  { env }: RequestContext,
  tenantId: string,
  id: string,
  param = 'id',
): Promise<FileObject> {
  const object = await env.FILES.head(objectKey(tenantId, 'files', id));
  if (object === null) throw noSuchFile(id, param);
  return fileOf(object);
}

/** GET /v1/files/{id}/content */
export const readFile: RouteHandler = async (request, context, id) => {
  const { tenant } = await authenticate(request, context, 'completions');
  const object = await context.env.FILES.get(objectKey(tenant.id, 'files', id));
  if (object === null) throw noSuchFile(id);
  const headers = { 'content-type': 'application/jsonl', 'content-length': String(object.size) };
  return new Response(object.body, { headers });
};

/** DELETE /v1/files/{id}. A batch that runs does not need its input file any more. */
export const deleteFile: RouteHandler = async (request, context, id) => {
  const { tenant } = await authenticate(request, context, 'completions');
  await findFile(context, tenant.id, id);
  await context.env.FILES.delete(objectKey(tenant.id, 'files', id));
  return jsonResponse({ id, object: 'file', deleted: true });
};

import {
  type FileObject,
  fileDeletion,
  fileFields,
  fileForm,
  fileList,
  fileObject,
  MAX_FILE_BYTES,
} from '@continuo/shared/batch.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { queryInteger } from '@continuo/shared/json-fields.ts';
import * as z from 'zod';
import { parseRequest } from '../dialects/parse-request.ts';
import type { RequestContext } from '../http/request-context.ts';
import { type Operation, type OperationInput, operation } from '../operations/operation.ts';
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

/** Takes the place of a file about to appear. @throws ApiError 400 if the tenant has too many files */
export async function takeFilePlace(context: RequestContext, tenantId: string, id: string): Promise<void> {
  const listed = (await listObjects(context.env.FILES, tenantId, 'files')).map(idOf);
  const place = { kind: 'files', id, listed, counted: listed.length, max: MAX_FILES };
  if (!(await takePlace(context, tenantId, place))) throw tooManyFiles();
}

async function uploadFile(
  { request, principal: { tenant } }: OperationInput,
  context: RequestContext,
): Promise<FileObject> {
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
    return fileOf(await object.complete());
  } catch (thrown) {
    await object.abort();
    throw thrown;
  }
}

/** The parameter of all lists. */
export const after = z.string().optional().describe('Id of the last object of the page before.');

const listQuery = z.object({
  after,
  limit: queryInteger(1, 10_000)
    .default(10_000)
    .describe('Number of files, at most 10,000. Default: 10,000.'),
  order: z
    .enum(['asc', 'desc'])
    .default('desc')
    .describe('`desc`, the newest first, or `asc`. Default: `desc`.'),
  purpose: z
    .enum(['batch', 'batch_output'])
    .optional()
    .describe('Only files with this purpose: `batch` or `batch_output`.'),
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

async function readFile({ id, principal }: OperationInput, { env }: RequestContext): Promise<Response> {
  const object = await env.FILES.get(objectKey(principal.tenant.id, 'files', id));
  if (object === null) throw noSuchFile(id);
  const headers = { 'content-type': 'application/jsonl', 'content-length': String(object.size) };
  return new Response(object.body, { headers });
}

export const FILE_OPERATIONS: readonly Operation[] = [
  operation('POST', '/v1/files', {
    id: 'createFile',
    summary: 'Upload the input of a batch.',
    scope: 'completions',
    form: fileForm,
    response: fileObject,
    run: uploadFile,
  }),
  operation('GET', '/v1/files', {
    id: 'listFiles',
    summary: 'List your files.',
    scope: 'completions',
    query: listQuery,
    response: fileList,
    errors: ['invalid_type', 'integer_above_max_value', 'integer_below_min_value'],
    async run({ query, principal }, { env }) {
      const files = (await listObjects(env.FILES, principal.tenant.id, 'files')).map(fileOf);
      const wanted = files.filter(({ purpose }) => query.purpose === undefined || purpose === query.purpose);
      return pageOf(wanted, query);
    },
  }),
  operation('GET', '/v1/files/{id}', {
    id: 'retrieveFile',
    summary: 'Describe one file.',
    scope: 'completions',
    response: fileObject,
    run: ({ id, principal }, context) => findFile(context, principal.tenant.id, id),
  }),
  operation('GET', '/v1/files/{id}/content', {
    id: 'downloadFile',
    summary: 'Download a file.',
    scope: 'completions',
    isFile: true,
    run: readFile,
  }),
  operation('DELETE', '/v1/files/{id}', {
    id: 'deleteFile',
    summary: 'Delete a file. Running batches do not need their input files.',
    scope: 'completions',
    response: fileDeletion,
    async run({ id, principal: { tenant } }, context) {
      await findFile(context, tenant.id, id);
      await context.env.FILES.delete(objectKey(tenant.id, 'files', id));
      return { id, object: 'file', deleted: true };
    },
  }),
];

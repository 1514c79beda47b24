import * as z from 'zod';
import { documented } from './documented.ts';
import { always, characters, integer, optional } from './json-fields.ts';

/** Files and batches in OpenAI's form. */

const seconds = z.int().min(0);
const time = (event: string) => seconds.nullable().describe(`Unix seconds at which the batch ${event}.`);

export const fileObject = z.object({
  id: z.string().describe('Id of the file.'),
  object: always('file'),
  bytes: z.int().min(0).describe('Size in bytes.'),
  created_at: seconds.describe('Unix seconds of the upload.'),
  filename: z.string().describe('Name that the uploader gave it.'),
  purpose: z.enum(['batch', 'batch_output']).describe("'batch' for inputs, 'batch_output' for results."),
  status: always('processed'),
});
export type FileObject = z.infer<typeof fileObject>;

const FILE: FileObject = {
  id: 'file-f3a0c1d5b7e2846a0c4d8e2f6b1a3950',
  object: 'file',
  bytes: 1_024,
  created_at: 1_795_000_000,
  filename: 'input.jsonl',
  purpose: 'batch',
  status: 'processed',
};
fileObject.register(documented, { name: 'File', example: FILE });

export const MAX_FILE_BYTES = 200 * 1024 * 1024;

/** The fields of a form beside its file. One without effect, such as an expiry, is refused. */
export const fileFields = z.strictObject({ purpose: always('batch') });

export const fileForm = fileFields
  .extend({
    file: z.string().meta({ format: 'binary' }).describe('JSON Lines: at most 200 MiB and 50,000 lines.'),
  })
  .register(documented, { name: 'FileUpload' });

export const uploadRequest = z.strictObject({
  filename: z.string().describe('Name of the file.'),
  purpose: always('batch'),
  bytes: integer(0, MAX_FILE_BYTES).describe('Size of the whole file.'),
  mime_type: optional(z.string(), 'Accepted and ignored: all files are JSON Lines.'),
});
uploadRequest.register(documented, {
  name: 'UploadRequest',
  examples: {
    file: { filename: FILE.filename, purpose: 'batch', bytes: FILE.bytes, mime_type: 'application/jsonl' },
  },
});

export const uploadCompletion = z.strictObject({
  part_ids: z.array(z.string()).min(1).max(1_000).describe('Ids of the parts, in the order of the file.'),
  md5: optional(
    z.string().regex(/^[0-9a-f]{32}$/i, 'expected 32 hexadecimal digits'),
    'MD5 of the whole file, in hexadecimal. A file with another one is refused.',
  ),
});

export const uploadObject = z.object({
  id: z.string().describe('Id of the upload.'),
  object: always('upload'),
  bytes: z.int().min(0).describe('Size of the whole file.'),
  created_at: seconds.describe('Unix seconds of the creation.'),
  expires_at: seconds.describe('Unix seconds after which the upload cannot be completed.'),
  filename: z.string().describe('Name of the file.'),
  purpose: always('batch'),
  status: z.enum(['pending', 'completed', 'cancelled', 'expired']).describe('State of the upload.'),
  file: fileObject.nullable().describe('The file; null until the upload is completed.'),
});
export type Upload = z.infer<typeof uploadObject>;

const UPLOAD: Upload = {
  id: 'upload_f3a0c1d5b7e2846a0c4d8e2f6b1a3952',
  object: 'upload',
  bytes: FILE.bytes,
  created_at: FILE.created_at,
  expires_at: FILE.created_at + 3_600,
  filename: FILE.filename,
  purpose: 'batch',
  status: 'completed',
  file: FILE,
};
uploadObject.register(documented, { name: 'Upload', example: UPLOAD });

export const partForm = z
  .object({ data: z.string().meta({ format: 'binary' }).describe('The bytes of the part, at most 64 MiB.') })
  .register(documented, { name: 'PartUpload' });

export const uploadPart = z.object({
  id: z.string().describe('Id of the part.'),
  object: always('upload.part'),
  created_at: seconds.describe('Unix seconds of the creation.'),
  upload_id: z.string().describe('Id of the upload.'),
});

const PART: z.infer<typeof uploadPart> = {
  id: 'part_f3a0c1d5b7e2846a0c4d8e2f6b1a3953',
  object: 'upload.part',
  created_at: FILE.created_at,
  upload_id: UPLOAD.id,
};
uploadPart.register(documented, { name: 'UploadPart', example: PART });
uploadCompletion.register(documented, {
  name: 'UploadCompletion',
  examples: { parts: { part_ids: [PART.id] } },
});

const page = <T extends z.ZodType>(item: T) =>
  z.object({
    object: always('list'),
    data: z.array(item).describe('The objects of this page.'),
    first_id: z.string().nullable().describe('Id of the first object; null if there is none.'),
    last_id: z.string().nullable().describe('Id of the last object, for `after`.'),
    has_more: z.boolean().describe('Whether objects follow.'),
  });

const pageOf = <T extends { readonly id: string }>(item: T) => ({
  object: 'list',
  data: [item],
  first_id: item.id,
  last_id: item.id,
  has_more: false,
});

export const fileList = page(fileObject).register(documented, { name: 'FileList', example: pageOf(FILE) });

export const fileDeletion = z.object({
  id: z.string().describe('Id of the file.'),
  object: always('file'),
  deleted: z.literal(true).describe('Always true.'),
});
fileDeletion.register(documented, {
  name: 'FileDeletion',
  example: { id: FILE.id, object: 'file', deleted: true },
});

/** Pairs of the caller. */
export const metadata = z
  .record(z.string(), characters(512))
  .check(({ value, issues }) => {
    const names = Object.keys(value);
    if (names.length <= 16 && names.every((name) => name.length <= 64)) return;
    const message = "Invalid 'metadata': expected at most 16 pairs, with names of at most 64 characters.";
    issues.push({ code: 'custom', input: value, message, params: { code: 'invalid_value' } });
  })
  .describe('At most 16 pairs of your own: names of 64 characters, values of 512.');

/** Endpoints that the lines of a batch may call. */
const batchEndpoint = z.enum(['/v1/completions', '/v1/score']);
export type BatchEndpoint = z.infer<typeof batchEndpoint>;

export const batchRequest = z.strictObject({
  input_file_id: z.string().describe('Id of a file with the purpose batch.'),
  endpoint: batchEndpoint.describe('Endpoint that all lines call.'),
  completion_window: z.literal('24h').describe("Time for the batch. Only '24h' is supported."),
  metadata: optional(metadata, metadata.description!),
});
batchRequest.register(documented, {
  name: 'BatchRequest',
  examples: {
    completions: { input_file_id: FILE.id, endpoint: '/v1/completions', completion_window: '24h' },
  },
});

const batchFault = z.object({
  code: z.string().describe('Error code.'),
  message: z.string().describe('What is wrong.'),
  param: z.string().nullable().describe('The invalid field; null if it is none.'),
  line: z.int().min(1).nullable().describe('The first invalid line; null if the whole file is.'),
});
export type BatchFault = z.infer<typeof batchFault>;

export const batchObject = z.object({
  id: z.string().describe('Id of the batch.'),
  object: always('batch'),
  endpoint: batchEndpoint.describe('Endpoint that all lines call.'),
  errors: z
    .object({
      object: always('list'),
      data: z.array(batchFault).describe('The first fault.'),
    })
    .nullable()
    .describe('Why the input file was refused; null if it was not.'),
  input_file_id: z.string().describe('Id of the input file.'),
  completion_window: always('24h'),
  status: z
    .enum([
      ...(['validating', 'failed', 'in_progress', 'finalizing'] as const),
      ...(['completed', 'expired', 'cancelling', 'cancelled'] as const),
    ])
    .describe('State of the batch.'),
  output_file_id: z.string().nullable().describe('File of the successful answers; null without any.'),
  error_file_id: z.string().nullable().describe('File of the failed lines; null without any.'),
  created_at: seconds.describe('Unix seconds of the creation.'),
  in_progress_at: time('started'),
  expires_at: time('expires'),
  finalizing_at: time('began to write its files'),
  completed_at: time('was completed'),
  failed_at: time('was refused'),
  expired_at: time('expired'),
  cancelling_at: time('was asked to end'),
  cancelled_at: time('was cancelled'),
  request_counts: z
    .object({
      total: z.int().min(0).describe('Lines of the input.'),
      completed: z.int().min(0).describe('Lines in the output file.'),
      failed: z.int().min(0).describe('Lines in the error file.'),
    })
    .describe('Lines by state.'),
  metadata: z.record(z.string(), z.string()).nullable().describe('Your own pairs.'),
});
export type Batch = z.infer<typeof batchObject>;

const BATCH: Batch = {
  id: 'batch_f3a0c1d5b7e2846a0c4d8e2f6b1a3951',
  object: 'batch',
  endpoint: '/v1/completions',
  errors: null,
  input_file_id: FILE.id,
  completion_window: '24h',
  status: 'in_progress',
  output_file_id: null,
  error_file_id: null,
  created_at: 1_795_000_010,
  in_progress_at: 1_795_000_011,
  expires_at: 1_795_086_410,
  finalizing_at: null,
  completed_at: null,
  failed_at: null,
  expired_at: null,
  cancelling_at: null,
  cancelled_at: null,
  request_counts: { total: 100, completed: 42, failed: 0 },
  metadata: { job: 'nightly' },
};
batchObject.register(documented, { name: 'Batch', example: BATCH });

export const batchList = page(batchObject).register(documented, {
  name: 'BatchList',
  example: pageOf(BATCH),
});

/** Statuses in which a batch stays. */
export const ENDED: readonly Batch['status'][] = ['failed', 'completed', 'expired', 'cancelled'];

import {
  batchList,
  batchObject,
  batchRequest,
  fileDeletion,
  fileFields,
  fileList,
  fileObject,
  uploadCompletion,
  uploadObject,
  uploadPart,
  uploadRequest,
} from '@continuo/shared/batch.ts';
import * as z from 'zod';
import { REPLAY_HEADERS } from '../http/headers.ts';
import { BODY, CALLER, type OperationGroup, REPEATABLE, STORED } from './documented-operation.ts';

const FILE = {
  id: 'file-f3a0c1d5b7e2846a0c4d8e2f6b1a3950',
  object: 'file',
  bytes: 1_024,
  created_at: 1_795_000_000,
  filename: 'input.jsonl',
  purpose: 'batch',
  status: 'processed',
};

const BATCH = {
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

const UPLOAD = {
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

const PART = {
  id: 'part_f3a0c1d5b7e2846a0c4d8e2f6b1a3953',
  object: 'upload.part',
  created_at: FILE.created_at,
  upload_id: UPLOAD.id,
};

const listOf = <T extends { readonly id: string }>(item: T) => ({
  object: 'list',
  data: [item],
  first_id: item.id,
  last_id: item.id,
  has_more: false,
});

const file = { name: 'File', schema: fileObject, example: FILE };
const batch = { name: 'Batch', schema: batchObject, example: BATCH };

const upload = { name: 'Upload', schema: uploadObject, example: UPLOAD };

const fileForm = fileFields.extend({
  file: z.string().meta({ format: 'binary' }).describe('JSON Lines: at most 200 MiB and 50,000 lines.'),
});

const partForm = z.object({
  data: z.string().meta({ format: 'binary' }).describe('The bytes of the part, at most 64 MiB.'),
});

const after = 'Id of the last object of the page before.';

/** The operations of files and batches. */
export const BATCH_OPERATIONS: OperationGroup = {
  'POST /v1/files': {
    id: 'createFile',
    summary: 'Upload the input of a batch.',
    form: { name: 'FileUpload', schema: fileForm },
    answer: file,
    errors: [...CALLER, ...BODY],
  },
  'GET /v1/files': {
    id: 'listFiles',
    summary: 'List your files.',
    query: {
      after,
      limit: 'Number of files, at most 10,000. Default: 10,000.',
      order: '`desc`, the newest first, or `asc`. Default: `desc`.',
      purpose: 'Only files with this purpose: `batch` or `batch_output`.',
    },
    answer: { name: 'FileList', schema: fileList, example: listOf(FILE) },
    errors: [...CALLER, 'invalid_type', 'integer_above_max_value', 'integer_below_min_value'],
  },
  'GET /v1/files/:rest': {
    id: 'retrieveFile',
    summary: 'Describe one file.',
    answer: file,
    errors: STORED,
  },
  'GET /v1/files/:rest/content': {
    id: 'downloadFile',
    summary: 'Download a file.',
    file: true,
    errors: STORED,
  },
  'DELETE /v1/files/:rest': {
    id: 'deleteFile',
    summary: 'Delete a file. Running batches do not need their input files.',
    answer: {
      name: 'FileDeletion',
      schema: fileDeletion,
      example: { id: FILE.id, object: 'file', deleted: true },
    },
    errors: STORED,
  },
  'POST /v1/uploads': {
    id: 'createUpload',
    summary: 'Start a file that is sent in parts.',
    body: {
      name: 'UploadRequest',
      schema: uploadRequest,
      examples: {
        file: {
          filename: FILE.filename,
          purpose: 'batch',
          bytes: FILE.bytes,
          mime_type: 'application/jsonl',
        },
      },
    },
    answer: upload,
    errors: [...CALLER, ...BODY, 'integer_above_max_value', 'integer_below_min_value'],
  },
  'POST /v1/uploads/:rest/parts': {
    id: 'addUploadPart',
    summary: 'Add a part.',
    form: { name: 'PartUpload', schema: partForm },
    answer: { name: 'UploadPart', schema: uploadPart, example: PART },
    errors: [...STORED, ...BODY, 'conflict'],
  },
  'POST /v1/uploads/:rest/complete': {
    id: 'completeUpload',
    summary: 'Make a file of the parts.',
    body: {
      name: 'UploadCompletion',
      schema: uploadCompletion,
      examples: { parts: { part_ids: [PART.id] } },
    },
    answer: upload,
    errors: [...STORED, ...BODY, 'conflict'],
  },
  'POST /v1/uploads/:rest/cancel': {
    id: 'cancelUpload',
    summary: 'Cancel an upload and delete its parts.',
    answer: upload,
    errors: [...STORED, 'conflict'],
  },
  'POST /v1/batches': {
    id: 'createBatch',
    summary: 'Run the requests of a file.',
    body: {
      name: 'BatchRequest',
      schema: batchRequest,
      examples: {
        completions: { input_file_id: FILE.id, endpoint: '/v1/completions', completion_window: '24h' },
      },
    },
    answer: batch,
    answerHeaders: REPLAY_HEADERS,
    headers: REPEATABLE,
    errors: [...STORED, ...BODY, 'conflict', 'string_above_max_length'],
  },
  'GET /v1/batches': {
    id: 'listBatches',
    summary: 'List your batches, the newest first.',
    query: { after, limit: 'Number of batches, at most 100. Default: 20.' },
    answer: { name: 'BatchList', schema: batchList, example: listOf(BATCH) },
    errors: [...CALLER, 'invalid_type', 'integer_above_max_value', 'integer_below_min_value'],
  },
  'GET /v1/batches/:rest': {
    id: 'retrieveBatch',
    summary: 'Show the state of a batch.',
    answer: batch,
    errors: STORED,
  },
  'POST /v1/batches/:rest/cancel': {
    id: 'cancelBatch',
    summary: 'Cancel a batch. Lines that run are finished, and all results are kept.',
    answer: batch,
    errors: [...STORED, 'conflict'],
  },
};

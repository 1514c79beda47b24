import { type Batch, batchList, batchObject, batchRequest } from '@continuo/shared/batch.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { queryInteger } from '@continuo/shared/json-fields.ts';
import * as z from 'zod';
import { parseRequest } from '../dialects/parse-request.ts';
import { newId, tooMany } from '../files/file-store.ts';
import { after, findFile, pageOf } from '../files/files.ts';
import { takePlace } from '../files/place.ts';
import { readJsonObject } from '../http/request-body.ts';
import type { RequestContext } from '../http/request-context.ts';
import { type Operation, type OperationInput, operation } from '../operations/operation.ts';
import { batchRunOf, findBatch, listRecords } from './batch-record.ts';

const WINDOW_SECONDS = 86_400;
/** Batches of one tenant that run at the same time. */
const MAX_RUNNING = 20;

async function createBatch(
  { request, principal: { tenant, key } }: OperationInput,
  context: RequestContext,
): Promise<Batch> {
  const asked = parseRequest(batchRequest, await readJsonObject(request, context));
  const file = await findFile(context, tenant.id, asked.input_file_id, 'input_file_id');
  if (file.purpose !== 'batch') {
    const message = "Invalid 'input_file_id': expected a file with the purpose 'batch'.";
    throw new ApiError('invalid_value', message, { param: 'input_file_id' });
  }
  const batch = newBatch(asked, context);
  const records = await listRecords(context.env, tenant.id);
  const place = {
    kind: 'batches',
    id: batch.id,
    max: MAX_RUNNING,
    counted: records.filter(({ ended }) => !ended).length,
    listed: records.map(({ id }) => id),
  };
  if (!(await takePlace(context, tenant.id, place)))
    throw tooMany(`You have ${MAX_RUNNING} running batches. Wait until one has ended.`);
  const started = await batchRunOf(context.env, tenant.id, batch.id).start({
    tenantId: tenant.id,
    keyId: key.id,
    batch,
  });
  const shown = started ?? (await findBatch(context.env, tenant.id, batch.id)) ?? batch;
  const fault = shown.errors?.data[0];
  if (fault === undefined) return shown;
  throw new ApiError('invalid_value', fault.message, { param: fault.param, shownCode: fault.code });
}

function newBatch(asked: z.infer<typeof batchRequest>, context: RequestContext): Batch {
  const now = context.now();
  const createdAt = Math.floor(now / 1_000);
  return {
    id: newId('batch_', now, context.randomHex),
    object: 'batch',
    endpoint: asked.endpoint,
    errors: null,
    input_file_id: asked.input_file_id,
    completion_window: asked.completion_window,
    status: 'validating',
    output_file_id: null,
    error_file_id: null,
    created_at: createdAt,
    in_progress_at: null,
    expires_at: createdAt + WINDOW_SECONDS,
    finalizing_at: null,
    completed_at: null,
    failed_at: null,
    expired_at: null,
    cancelling_at: null,
    cancelled_at: null,
    request_counts: { total: 0, completed: 0, failed: 0 },
    metadata: asked.metadata ?? null,
  };
}

const listQuery = z.object({
  after,
  limit: queryInteger(1, 100).default(20).describe('Number of batches, at most 100. Default: 20.'),
});

const noSuchBatch = (id: string): ApiError =>
  new ApiError('not_found', `No batch found with id '${id.slice(0, 100)}'.`, { param: 'id' });

async function showBatch({ id, principal }: OperationInput, { env }: RequestContext): Promise<Batch> {
  const batch = await findBatch(env, principal.tenant.id, id);
  if (batch === null) throw noSuchBatch(id);
  return batch;
}

async function cancelBatch(
  { id, principal: { tenant } }: OperationInput,
  { env }: RequestContext,
): Promise<Batch> {
  const cancelled = await batchRunOf(env, tenant.id, id).cancel();
  const batch = cancelled ?? (await findBatch(env, tenant.id, id));
  if (batch === null) throw noSuchBatch(id);
  if (batch.status === 'cancelling' || batch.status === 'cancelled') return batch;
  const message = `Cannot cancel a batch with status '${batch.status}'.`;
  throw new ApiError('conflict', message, { headers: { 'x-should-retry': 'false' } });
}

export const BATCH_OPERATIONS: readonly Operation[] = [
  operation('POST', '/v1/batches', {
    id: 'createBatch',
    summary: 'Run the requests of a file.',
    scope: 'completions',
    ownBody: batchRequest,
    response: batchObject,
    errors: ['not_found', 'conflict', 'string_above_max_length'],
    isRepeatable: true,
    run: createBatch,
  }),
  operation('GET', '/v1/batches', {
    id: 'listBatches',
    summary: 'List your batches, the newest first.',
    scope: 'completions',
    query: listQuery,
    response: batchList,
    errors: ['invalid_type', 'integer_above_max_value', 'integer_below_min_value'],
    async run({ query, principal: { tenant } }, { env }) {
      const page = pageOf(await listRecords(env, tenant.id), query);
      const batches = await Promise.all(page.data.map(({ id }) => findBatch(env, tenant.id, id)));
      return { ...page, data: batches.filter((batch) => batch !== null) };
    },
  }),
  operation('GET', '/v1/batches/{id}', {
    id: 'retrieveBatch',
    summary: 'Show the state of a batch.',
    scope: 'completions',
    response: batchObject,
    run: showBatch,
  }),
  operation('POST', '/v1/batches/{id}/cancel', {
    id: 'cancelBatch',
    summary: 'Cancel a batch. Lines that run are finished, and all results are kept.',
    scope: 'completions',
    response: batchObject,
    errors: ['conflict'],
    run: cancelBatch,
  }),
];

import { type Batch, batchObject, ENDED } from '@continuo/shared/batch.ts';
import type { BatchOrder } from '../env/batch-protocol.ts';
import type { Env } from '../env/env.ts';
import { idOf, listObjects, objectKey } from '../files/file-store.ts';

/**
 * The record of a batch in R2: its first state while its object runs it, then its last one. It is what lists
 * show, and all that is left of a batch that has ended.
 */
export async function putRecord(
  { FILES }: Env,
  { tenantId, batch }: Pick<BatchOrder, 'tenantId' | 'batch'>,
): Promise<void> {
  const ended = String(ENDED.includes(batch.status));
  await FILES.put(objectKey(tenantId, 'batches', batch.id), JSON.stringify(batch), {
    customMetadata: { ended },
  });
}

async function readRecord({ FILES }: Env, tenantId: string, id: string): Promise<Batch | null> {
  const object = await FILES.get(objectKey(tenantId, 'batches', id));
  return object === null ? null : batchObject.parse(await object.json());
}

/** Returns the object that runs a batch. Another tenant's id leads to another object, which has no batch. */
export const batchRunOf = ({ BATCHES }: Env, tenantId: string, id: string) =>
  BATCHES.get(BATCHES.idFromName(`${tenantId}\n${id}`));

/** Returns a batch as it is now; null if the tenant has no such batch. */
export const findBatch = async (env: Env, tenantId: string, id: string): Promise<Batch | null> =>
  (await batchRunOf(env, tenantId, id).show()) ?? (await readRecord(env, tenantId, id));

/** Returns the batches of a tenant, newest first. */
export async function listRecords(
  { FILES }: Env,
  tenantId: string,
): Promise<{ readonly id: string; readonly ended: boolean }[]> {
  const objects = await listObjects(FILES, tenantId, 'batches');
  return objects.map((object) => ({
    id: idOf(object),
    ended: object.customMetadata?.ended === 'true',
  }));
}

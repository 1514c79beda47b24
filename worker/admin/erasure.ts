import { callObject } from '@continuo/limits/limiter-client.ts';
import { DAY_MS } from '@continuo/limits/usage/usage-sums.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { always } from '@continuo/shared/json-fields.ts';
import { retry, settleAll } from '@continuo/shared/retry.ts';
import * as z from 'zod';
import { batchRunOf, listRecords } from '../batches/batch-record.ts';
import { deleteAllObjects } from '../files/file-store.ts';
import type { RequestContext } from '../http/request-context.ts';
import type { EntryMaker } from '../operations/operation.ts';
import { OPERATOR_TENANT } from '../tenants/built-in.ts';
import { erasedTenants, eraseTenant, readTenant } from '../tenants/tenant-store.ts';
import { afterAlone } from '../timers/request-timers.ts';
import { existing } from './admin-objects.ts';

export const erasureQuery = z.strictObject({
  usage: z
    .enum(['keep', 'erase'])
    .default('keep')
    .describe("'keep' keeps sums by month and model for accounting; 'erase' keeps nothing."),
});
export const erasedObject = z.object({
  object: always('tenant'),
  id: z.string().describe('Id of the tenant. It cannot be used again.'),
  erased: z.literal(true).describe('Always true.'),
});

/** Erases tenants from all stores. Idempotent answers and streams delete themselves in 71 minutes. */

type Stores = Pick<RequestContext, 'env' | 'settings' | 'backoff' | 'now'>;

/** Erases what the stores have of a tenant. Can be repeated. */
async function eraseData(
  { env, settings, backoff }: Stores,
  tenantId: string,
  keepUsage: boolean,
): Promise<void> {
  const running = (await listRecords(env, tenantId)).filter(({ ended }) => !ended);
  for (const { id } of running) await batchRunOf(env, tenantId, id).erase();
  const eraseLimiter = () =>
    callObject({ env, timers: { after: afterAlone } }, tenantId, (object) =>
      object.erase(tenantId, settings.ERASE_AFTER_MS, keepUsage),
    );
  await retry(eraseLimiter, backoff);
  await deleteAllObjects(env.FILES, tenantId);
}

/** Erases a suspended tenant, or an erased one again. @throws ApiError 404, 409 */
export async function erase(
  id: string,
  usage: 'keep' | 'erase',
  entry: EntryMaker,
  context: RequestContext,
): Promise<z.infer<typeof erasedObject>> {
  const { env, keys } = context;
  if (id === OPERATOR_TENANT) throw new ApiError('conflict', `The tenant '${id}' cannot be erased.`);
  if (!(await eraseTenant(env.DB, id, entry(id, id, { usage })))) {
    existing(await readTenant(env.DB, id), 'tenant', id);
    throw new ApiError('conflict', `The tenant '${id}' is not suspended. Suspend it before you erase it.`);
  }
  keys.forgetTenant(id);
  await eraseData(context, id, usage === 'keep');
  return { object: 'tenant', id, erased: true };
}

const AGAIN_FOR_MS = 3 * DAY_MS;

/** Erases the data of recently erased tenants again: what a failure left, and what arrived late. */
export async function eraseAgain(stores: Stores): Promise<void> {
  const tenants = await erasedTenants(stores.env.DB, stores.now() - AGAIN_FOR_MS);
  await settleAll(tenants.map(({ id, keepUsage }) => eraseData(stores, id, keepUsage)));
}

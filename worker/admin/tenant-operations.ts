import { ApiError } from '../../shared/errors.ts';
import type { RequestContext } from '../context.ts';
import { limiterOf } from '../limits/admission.ts';
import { insistently } from '../retry.ts';
import { DEVELOPMENT } from '../tenants/built-in.ts';
import { readPlan } from '../tenants/plan-store.ts';
import { insertTenant, listTenants, readTenant, updateTenant } from '../tenants/tenant-store.ts';
import { tenantBody, tenantObject, tenantPatch } from './admin-schemas.ts';
import { showTenant } from './answers.ts';
import { toCamelCase } from './casing.ts';
import { recordOperations } from './record-operations.ts';

/**
 * Tells the limiter until it has heard what the record says: of two changes at once, the one that is recorded first may
 * be told last.
 */
async function tellSuspension(id: string, suspended: boolean, context: RequestContext): Promise<void> {
  await insistently(() => limiterOf(context, id).block(null, suspended));
  const tenant = await readTenant(context.env.DB, id);
  if (tenant && tenant.suspended !== suspended) await tellSuspension(id, tenant.suspended, context);
}

async function checkPlan(id: string | null | undefined, { env }: RequestContext): Promise<void> {
  if (id === null || id === undefined || (await readPlan(env.DB, id))) return;
  throw new ApiError('invalid_value', `There is no plan '${id}'.`, { param: 'plan' });
}

export const TENANT_OPERATIONS = recordOperations({
  name: 'tenant',
  body: tenantBody,
  patch: tenantPatch,
  object: tenantObject,
  show: showTenant,
  effect: 'suspension at once, everything else within a minute',
  list: listTenants,
  read: readTenant,
  // The development tenant has no record, but its limiter and its usage bear this name.
  insert: async (db, tenant) => tenant.id !== DEVELOPMENT.tenant.id && (await insertTenant(db, tenant)),
  async create({ plan: planId, limits, ...rest }, context) {
    await checkPlan(planId, context);
    const id = rest.id ?? `t-${context.randomHex(8)}`;
    return { ...rest, id, planId, limits: toCamelCase(limits), suspended: false, createdAt: context.now() };
  },
  async change(id, { plan, limits, ...patch }, context) {
    await checkPlan(plan, context);
    const changes = { ...patch, planId: plan, limits: limits && toCamelCase(limits) };
    const changed = await updateTenant(context.env.DB, id, changes);
    if (changed && patch.suspended !== undefined) await tellSuspension(id, patch.suspended, context);
    return changed;
  },
  forget: ({ id }, keys) => keys.forgetTenant(id),
});

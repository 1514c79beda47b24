import { ApiError } from '../../shared/errors.ts';
import { limiterOf } from '../admission.ts';
import type { RequestContext } from '../context.ts';
import { DEVELOPMENT } from '../tenants/built-in.ts';
import { readPlan } from '../tenants/plan-store.ts';
import { insertTenant, listTenants, readTenant, updateTenant } from '../tenants/tenant-store.ts';
import { tenantBody, tenantObject, tenantPatch, toLimits } from './admin-schemas.ts';
import { showTenant } from './answers.ts';
import { recordOperations } from './record-operations.ts';

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
  update: updateTenant,
  async create({ plan: planId, limits, ...rest }, context) {
    await checkPlan(planId, context);
    const id = rest.id ?? `t-${context.randomHex(8)}`;
    return { ...rest, id, planId, limits: toLimits(limits), suspended: false, createdAt: context.now() };
  },
  async change(tenant, { plan, limits, ...patch }, context) {
    await checkPlan(plan, context);
    return {
      ...tenant,
      planId: plan === undefined ? tenant.planId : plan,
      name: patch.name ?? tenant.name,
      weight: patch.weight === undefined ? tenant.weight : patch.weight,
      limits: limits === undefined ? tenant.limits : toLimits(limits),
      dialect: patch.dialect ?? tenant.dialect,
      suspended: patch.suspended ?? tenant.suspended,
    };
  },
  async announce({ id, suspended }, context) {
    await limiterOf(context, id).block(null, suspended);
    context.keys.forgetTenant(id);
  },
});

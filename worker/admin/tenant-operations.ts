import { ApiError } from '@continuo/shared/errors.ts';
import type { RequestContext } from '../http/request-context.ts';
import { limiterOf } from '../limits/reservation.ts';
import { DEVELOPMENT } from '../tenants/built-in.ts';
import { insertPlan, listPlans, readPlan, updatePlan } from '../tenants/plan-store.ts';
import { insertTenant, listTenants, readTenant, updateTenant } from '../tenants/tenant-store.ts';
import { retry } from '../timers/retry.ts';
import { showPlan, showTenant } from './admin-objects.ts';
import { planBody, planObject, planPatch, tenantBody, tenantObject, tenantPatch } from './admin-schemas.ts';
import { toCamelCase } from './field-names.ts';
import { recordOperations } from './record-operations.ts';

export const PLAN_OPERATIONS = recordOperations({
  name: 'plan',
  body: planBody,
  patch: planPatch,
  examples: {
    body: { id: 'basic', name: 'Basic', limits: { requests_per_minute: 60, tokens_per_day: 1_000_000 } },
    patch: { limits: { requests_per_minute: 120 } },
  },
  object: planObject,
  show: showPlan,
  effect: 'effective for its tenants within one minute',
  list: listPlans,
  read: readPlan,
  insert: insertPlan,
  create: async (body, { now }) => ({ ...body, limits: toCamelCase(body.limits), createdAt: now() }),
  change: (id, { limits, ...patch }, { env }) =>
    updatePlan(env.DB, id, { ...patch, limits: limits && toCamelCase(limits) }),
  forget: (_, keys) => keys.forgetAll(),
});

/**
 * Sends the suspension to the limiter until it matches the record. Of two concurrent changes, the one that was recorded
 * first may reach the limiter last.
 */
async function sendSuspension(id: string, suspended: boolean, context: RequestContext): Promise<void> {
  await retry(() => limiterOf(context, id).block(null, suspended), context.backoff);
  const tenant = await readTenant(context.env.DB, id);
  if (tenant && tenant.suspended !== suspended) await sendSuspension(id, tenant.suspended, context);
}

async function checkPlan(id: string | null | undefined, { env }: RequestContext): Promise<void> {
  if (id === null || id === undefined || (await readPlan(env.DB, id))) return;
  throw new ApiError('invalid_value', `There is no plan '${id}'.`, { param: 'plan' });
}

export const TENANT_OPERATIONS = recordOperations({
  name: 'tenant',
  body: tenantBody,
  patch: tenantPatch,
  examples: {
    body: { id: 'acme', name: 'Acme', plan: 'basic' },
    patch: { suspended: true },
  },
  object: tenantObject,
  show: showTenant,
  effect: 'suspension is effective at once, all other changes within one minute',
  list: listTenants,
  read: readTenant,
  // The development tenant has no record, but its limiter and its usage have its id.
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
    if (changed && patch.suspended !== undefined) await sendSuspension(id, patch.suspended, context);
    return changed;
  },
  forget: ({ id }, keys) => keys.forgetTenant(id),
});

import { ApiError } from '../../shared/errors.ts';
import { limiterOf } from '../admission.ts';
import type { RequestContext } from '../context.ts';
import { DEVELOPMENT } from '../tenants/built-in.ts';
import { readPlan } from '../tenants/plan-store.ts';
import { insertTenant, listTenants, readTenant, updateTenant } from '../tenants/tenant-store.ts';
import { listOf, pageQuery, tenantBody, tenantObject, tenantPatch, toLimits } from './admin-schemas.ts';
import { found, page, showTenant } from './answers.ts';
import { type Operation, operation } from './operation.ts';

async function checkPlan(id: string | null | undefined, { env }: RequestContext): Promise<void> {
  if (id === null || id === undefined || (await readPlan(env.DB, id))) return;
  throw new ApiError('invalid_value', `There is no plan '${id}'.`, { param: 'plan' });
}

export const TENANT_OPERATIONS: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/tenants',
    summary: 'List tenants',
    status: 200,
    query: pageQuery,
    response: listOf(tenantObject),
    run: async ({ query }, { env }) =>
      page(await listTenants(env.DB, query.after, query.limit + 1), query.limit, showTenant),
  }),
  operation({
    method: 'POST',
    path: '/tenants',
    summary: 'Create a tenant',
    status: 201,
    body: tenantBody,
    response: tenantObject,
    async run({ body }, context) {
      await checkPlan(body.plan, context);
      const { plan: planId, id = `t-${context.randomHex(8)}`, ...rest } = body;
      const limits = toLimits(body.limits);
      const tenant = { ...rest, id, planId, limits, suspended: false, createdAt: context.now() };
      // The development tenant has no record, but its limiter and its usage bear this name.
      const free = id !== DEVELOPMENT.tenant.id && (await insertTenant(context.env.DB, tenant));
      if (free) return showTenant(tenant);
      throw new ApiError('conflict', `The tenant '${id}' exists already.`, { param: 'id' });
    },
  }),
  operation({
    method: 'GET',
    path: '/tenants/{id}',
    summary: 'Show a tenant',
    status: 200,
    response: tenantObject,
    run: async ({ id }, { env }) => showTenant(found(await readTenant(env.DB, id), 'tenant', id)),
  }),
  operation({
    method: 'PATCH',
    path: '/tenants/{id}',
    summary: 'Change a tenant: suspension at once, everything else within a minute',
    status: 200,
    body: tenantPatch,
    response: tenantObject,
    async run({ id, body }, context) {
      const tenant = found(await readTenant(context.env.DB, id), 'tenant', id);
      await checkPlan(body.plan, context);
      const { plan: planId = tenant.planId, weight = tenant.weight } = body;
      const changed = {
        ...tenant,
        planId,
        weight,
        name: body.name ?? tenant.name,
        limits: body.limits === undefined ? tenant.limits : toLimits(body.limits),
        dialect: body.dialect ?? tenant.dialect,
        suspended: body.suspended ?? tenant.suspended,
      };
      await updateTenant(context.env.DB, changed);
      await limiterOf(context, id).block(null, changed.suspended);
      context.keys.forgetTenant(id);
      return showTenant(changed);
    },
  }),
];

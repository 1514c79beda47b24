import { ApiError } from '../../shared/errors.ts';
import { insertPlan, listPlans, readPlan, updatePlan } from '../tenants/plan-store.ts';
import { listOf, pageQuery, planBody, planObject, planPatch, toLimits } from './admin-schemas.ts';
import { found, page, showPlan } from './answers.ts';
import { type Operation, operation } from './operation.ts';

export const PLAN_OPERATIONS: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/plans',
    summary: 'List plans',
    status: 200,
    query: pageQuery,
    response: listOf(planObject),
    run: async ({ query }, { env }) =>
      page(await listPlans(env.DB, query.after, query.limit + 1), query.limit, showPlan),
  }),
  operation({
    method: 'POST',
    path: '/plans',
    summary: 'Create a plan',
    status: 201,
    body: planBody,
    response: planObject,
    async run({ body }, { env, now }) {
      const plan = { ...body, limits: toLimits(body.limits), createdAt: now() };
      if (await insertPlan(env.DB, plan)) return showPlan(plan);
      throw new ApiError('conflict', `The plan '${plan.id}' exists already.`, { param: 'id' });
    },
  }),
  operation({
    method: 'GET',
    path: '/plans/{id}',
    summary: 'Show a plan',
    status: 200,
    response: planObject,
    run: async ({ id }, { env }) => showPlan(found(await readPlan(env.DB, id), 'plan', id)),
  }),
  operation({
    method: 'PATCH',
    path: '/plans/{id}',
    summary: 'Change a plan; its tenants follow within a minute',
    status: 200,
    body: planPatch,
    response: planObject,
    async run({ id, body }, { env, keys }) {
      const plan = found(await readPlan(env.DB, id), 'plan', id);
      const changed = {
        ...plan,
        name: body.name ?? plan.name,
        limits: body.limits === undefined ? plan.limits : toLimits(body.limits),
        weight: body.weight ?? plan.weight,
      };
      await updatePlan(env.DB, changed);
      keys.forgetAll();
      return showPlan(changed);
    },
  }),
];

import { insertPlan, listPlans, readPlan, updatePlan } from '../tenants/plan-store.ts';
import { planBody, planObject, planPatch } from './admin-schemas.ts';
import { showPlan } from './answers.ts';
import { toCamelCase } from './casing.ts';
import { recordOperations } from './record-operations.ts';

export const PLAN_OPERATIONS = recordOperations({
  name: 'plan',
  body: planBody,
  patch: planPatch,
  object: planObject,
  show: showPlan,
  effect: 'its tenants follow within a minute',
  list: listPlans,
  read: readPlan,
  insert: insertPlan,
  create: async (body, { now }) => ({ ...body, limits: toCamelCase(body.limits), createdAt: now() }),
  change: (id, { limits, ...patch }, { env }) =>
    updatePlan(env.DB, id, { ...patch, limits: limits && toCamelCase(limits) }),
  forget: (_, keys) => keys.forgetAll(),
});

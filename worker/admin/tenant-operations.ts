import { syncBlock } from '@continuo/limits/limiter-client.ts';
import { listOf, pageQuery } from '@continuo/shared/account-fields.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { toCamelCase } from '@continuo/shared/field-names.ts';
import {
  planBody,
  planObject,
  planPatch,
  tenantBody,
  tenantObject,
  tenantPatch,
} from '@continuo/shared/tenant-objects.ts';
import type * as z from 'zod';
import type { RequestContext } from '../http/request-context.ts';
import type { EntryMaker, Operation } from '../operations/operation.ts';
import type { AuditEntry } from '../tenants/audit-log.ts';
import { DEVELOPMENT } from '../tenants/built-in.ts';
import type { KeyDirectory } from '../tenants/key-directory.ts';
import { insertPlan, listPlans, readPlan, removePlan, updatePlan } from '../tenants/plan-store.ts';
import { insertTenant, listTenants, readTenant, updateTenant } from '../tenants/tenant-store.ts';
import { existing, page, showPlan, showTenant } from './admin-objects.ts';
import { adminOperation, type Role } from './admin-operation.ts';
import { erase, erasedObject, erasureQuery } from './erasure.ts';
import { priceWarning } from './price-warning.ts';

/** A kind of record with the operations list, create, show and change. */
interface RecordKind<Stored extends { readonly id: string }, Body, Patch> {
  readonly name: string;
  readonly body: z.ZodType<Body>;
  readonly patch: z.ZodType<Patch>;
  readonly object: z.ZodType;
  readonly show: (record: Stored) => object;
  /** Roles that may show and change one record, and create one. */
  readonly roles: Record<'show' | 'change' | 'create', readonly Role[]>;
  /** @throws ApiError if a key that is bound to a tenant may not see the record, or not make the change */
  readonly check?: (id: string, tenantId: string, patch: Partial<Patch>) => void;
  /** Id of the record's tenant, in the audit log; null = none. */
  readonly tenantOf: (id: string) => string | null;
  /** States when a change becomes effective; part of the summary. */
  readonly effect: string;
  list(db: D1Database, after: string, limit: number): Promise<Stored[]>;
  read(db: D1Database, id: string): Promise<Stored | null>;
  /** Returns false if the id is taken. */
  insert(db: D1Database, record: Stored, entry: AuditEntry): Promise<boolean>;
  create(body: Body, context: RequestContext): Promise<Stored>;
  /** Returns the changed record; null if there is none. */
  change(id: string, patch: Patch, entry: EntryMaker, context: RequestContext): Promise<Stored | null>;
  /** Removes cached keys that depend on the record. */
  forget(changed: Stored, keys: KeyDirectory): void;
}

/** A body that may set limits. */
type Limited = { readonly limits?: Readonly<Record<string, unknown>> | undefined };

/** Returns the four admin operations (list, create, show, change) of one kind of record. */
function recordOperations<
  Stored extends { readonly id: string },
  Body extends Limited,
  Patch extends Limited,
>(kind: RecordKind<Stored, Body, Patch>): readonly Operation[] {
  const { name, object, show, roles, tenantOf } = kind;
  const check = (id: string, tenantId: string | null, patch: Partial<Patch> = {}): void => {
    if (tenantId !== null) kind.check?.(id, tenantId, patch);
  };
  const shown = async (record: Stored, { limits }: Limited, context: RequestContext) => {
    const warning = await priceWarning(limits, context);
    return { ...show(record), ...(warning !== undefined && { warning }) };
  };
  return [
    adminOperation('GET', `/${name}s`, {
      summary: `List ${name}s`,
      query: pageQuery,
      response: listOf(object),
      run: async ({ query }, { env }) =>
        page(await kind.list(env.DB, query.after, query.limit + 1), query.limit, show),
    }),
    adminOperation('POST', `/${name}s`, {
      summary: `Create a ${name}`,
      status: 201,
      roles: roles.create,
      body: kind.body,
      response: object,
      async run({ body, entry }, context) {
        const record = await kind.create(body, context);
        const made = entry(record.id, tenantOf(record.id), body);
        if (await kind.insert(context.env.DB, record, made)) return shown(record, body, context);
        throw new ApiError('conflict', `The ${name} '${record.id}' already exists. Choose another id.`, {
          param: 'id',
        });
      },
    }),
    adminOperation('GET', `/${name}s/{id}`, {
      summary: `Show a ${name}`,
      roles: roles.show,
      response: object,
      async run({ id, tenantId }, { env }) {
        check(id, tenantId);
        return show(existing(await kind.read(env.DB, id), name, id));
      },
    }),
    adminOperation('PATCH', `/${name}s/{id}`, {
      summary: `Change a ${name}: ${kind.effect}`,
      roles: roles.change,
      body: kind.patch,
      response: object,
      async run({ id, body, tenantId, entry }, context) {
        check(id, tenantId, body);
        const changed = existing(await kind.change(id, body, entry, context), name, id);
        kind.forget(changed, context.keys);
        return shown(changed, body, context);
      },
    }),
  ];
}

const PLAN_RECORDS = recordOperations({
  name: 'plan',
  body: planBody,
  patch: planPatch,
  object: planObject,
  show: showPlan,
  roles: { show: ['billing', 'read-only'], change: ['billing'], create: ['billing'] },
  tenantOf: () => null,
  effect: 'effective for its tenants within one minute',
  list: listPlans,
  read: readPlan,
  insert: insertPlan,
  create: async (body, { now }) => ({ ...body, limits: toCamelCase(body.limits), createdAt: now() }),
  change: (id, patch, entry, { env }) =>
    updatePlan(
      env.DB,
      id,
      { ...patch, limits: patch.limits && toCamelCase(patch.limits) },
      entry(id, null, patch),
    ),
  forget: (_, keys) => keys.forgetAll(),
});

export const PLAN_OPERATIONS: readonly Operation[] = [
  ...PLAN_RECORDS,
  adminOperation('DELETE', '/plans/{id}', {
    summary: 'Remove a plan that no tenant has',
    roles: ['billing'],
    response: planObject,
    async run({ id, entry }, { env }) {
      const removed = await removePlan(env.DB, id, entry(id, null));
      if (removed !== null) return showPlan(removed);
      existing(await readPlan(env.DB, id), 'plan', id);
      throw new ApiError('conflict', `Tenants have the plan '${id}'. Give them another one first.`);
    },
  }),
];

async function checkPlan(id: string | null | undefined, { env }: RequestContext): Promise<void> {
  if (id === null || id === undefined || (await readPlan(env.DB, id))) return;
  throw new ApiError('invalid_value', `There is no plan '${id}'.`, { param: 'plan' });
}

/** What only keys of the whole endpoint may change. */
const RESERVED = ['plan', 'limits', 'weight', 'suspended'] as const;

/** @throws ApiError 404 for another tenant, 403 for a reserved field */
function checkOwn(id: string, tenantId: string, patch: Partial<z.infer<typeof tenantPatch>>): void {
  existing(id === tenantId ? id : null, 'tenant', id);
  const param = RESERVED.find((name) => patch[name] !== undefined);
  if (param === undefined) return;
  const message = `The role 'tenant:${tenantId}' of this admin key may not change '${param}'. Use another key.`;
  throw new ApiError('insufficient_scope', message, { param });
}

const TENANT_RECORDS = recordOperations({
  name: 'tenant',
  body: tenantBody,
  patch: tenantPatch,
  object: tenantObject,
  show: showTenant,
  roles: { show: ['billing', 'read-only', 'tenant'], change: ['billing', 'tenant'], create: [] },
  check: checkOwn,
  tenantOf: (id) => id,
  effect: 'suspension is effective at once, all other changes within one minute',
  list: listTenants,
  read: readTenant,
  // The development tenant has no record, but its limiter and its usage have its id.
  insert: async (db, tenant, entry) =>
    tenant.id !== DEVELOPMENT.tenant.id && (await insertTenant(db, tenant, entry)),
  async create({ plan: planId, limits, ...rest }, context) {
    await checkPlan(planId, context);
    const id = rest.id ?? `t-${context.randomHex(8)}`;
    const terms = { ...toCamelCase(rest), id, planId, limits: toCamelCase(limits) };
    return { ...terms, suspended: false, createdAt: context.now() };
  },
  async change(id, body, entry, context) {
    const { plan, limits, ...patch } = body;
    await checkPlan(plan, context);
    const changes = { ...toCamelCase(patch), planId: plan, limits: limits && toCamelCase(limits) };
    const changed = await updateTenant(context.env.DB, id, changes, entry(id, id, body));
    const isSuspended = async () => (await readTenant(context.env.DB, id))?.suspended ?? null;
    if (patch.suspended !== undefined) await syncBlock({ tenantId: id, keyId: null }, isSuspended, context);
    return changed;
  },
  forget: ({ id }, keys) => keys.forgetTenant(id),
});

export const TENANT_OPERATIONS: readonly Operation[] = [
  ...TENANT_RECORDS,
  adminOperation('DELETE', '/tenants/{id}', {
    summary: 'Erase a suspended tenant: its keys, files, batches, usage and limits',
    query: erasureQuery,
    response: erasedObject,
    run: ({ id, query, entry }, context) => erase(id, query.usage, entry, context),
  }),
];

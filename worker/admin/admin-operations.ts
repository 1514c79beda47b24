import * as z from 'zod';
import { type OperationGroup, openApiDocument } from '../operations/document.ts';
import type { Operation } from '../operations/operation.ts';
import { ADMIN_BASE, adminOperation } from './admin-operation.ts';
import { AUDIT_OPERATIONS } from './audit-operations.ts';
import { EVENT_OPERATIONS } from './event-operations.ts';
import { KEY_OPERATIONS } from './key-operations.ts';
import { MONEY_OPERATIONS } from './money-operations.ts';
import { PLAN_OPERATIONS, TENANT_OPERATIONS } from './tenant-operations.ts';
import { UPSTREAM_OPERATIONS } from './upstream-operations.ts';
import { USAGE_OPERATIONS } from './usage-operations.ts';

const DATA_OPERATIONS: readonly Operation[] = [
  ...PLAN_OPERATIONS,
  ...TENANT_OPERATIONS,
  ...KEY_OPERATIONS,
  ...USAGE_OPERATIONS,
  ...AUDIT_OPERATIONS,
  ...MONEY_OPERATIONS,
  ...EVENT_OPERATIONS,
  ...UPSTREAM_OPERATIONS,
];

const ADMIN_API = {
  title: 'Continuo admin API',
  description: 'Plans, tenants, API keys and usage. Every request needs an admin key.',
};

/** `/admin/v1/keys/{id}` is in the group `Keys`. */
const groupsOf = (operations: readonly Operation[]): OperationGroup[] =>
  [...Map.groupBy(operations, ({ path }) => path.slice(ADMIN_BASE.length).split('/')[1]!)].map(
    ([name, operations]) => ({ tag: name[0]!.toUpperCase() + name.slice(1), operations }),
  );

/** All operations under /admin/v1. Each of them requires an admin key. */
export const ADMIN_OPERATIONS: readonly Operation[] = [
  ...DATA_OPERATIONS,
  adminOperation('GET', '/openapi.json', {
    summary: 'Show this document',
    roles: ['billing', 'read-only', 'tenant'],
    response: z.record(z.string(), z.unknown()),
    run: () => openApiDocument(groupsOf(DATA_OPERATIONS), ADMIN_API),
  }),
];

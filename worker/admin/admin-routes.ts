import * as z from 'zod';
import type { Route } from '../http/router.ts';
import { adminOpenApiDocument } from './admin-document.ts';
import { type AccountOperation, ADMIN_BASE, type AdminOperation, operation } from './admin-operation.ts';
import { AUDIT_OPERATIONS } from './audit-operations.ts';
import { EVENT_OPERATIONS } from './event-operations.ts';
import { KEY_OPERATIONS } from './key-operations.ts';
import { MONEY_OPERATIONS } from './money-operations.ts';
import { PLAN_OPERATIONS, TENANT_OPERATIONS } from './tenant-operations.ts';
import { USAGE_OPERATIONS } from './usage-operations.ts';

const DATA_OPERATIONS: readonly AdminOperation[] = [
  ...PLAN_OPERATIONS,
  ...TENANT_OPERATIONS,
  ...KEY_OPERATIONS,
  ...USAGE_OPERATIONS,
  ...AUDIT_OPERATIONS,
  ...MONEY_OPERATIONS,
  ...EVENT_OPERATIONS,
];

const ADMIN_OPERATIONS: readonly AdminOperation[] = [
  ...DATA_OPERATIONS,
  operation({
    method: 'GET',
    path: '/openapi.json',
    summary: 'Show this document',
    roles: ['billing', 'read-only', 'tenant'],
    response: z.record(z.string(), z.unknown()),
    run: async () => adminOpenApiDocument(DATA_OPERATIONS),
  }),
];

/** The routes of operations below `base`. */
export const routesOf = (operations: readonly AccountOperation[], base: string): Route[] =>
  operations.map(({ method, path, handle }) => ({
    method,
    path: base + path.replace('{id}', ':rest'),
    handler: handle,
  }));

/** All routes under /admin/v1. Each of them requires an admin key. */
export const ADMIN_ROUTES: readonly Route[] = routesOf(ADMIN_OPERATIONS, ADMIN_BASE);

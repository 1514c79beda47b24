import * as z from 'zod';
import type { RouteSpec } from '../routes.ts';
import { KEY_OPERATIONS } from './key-operations.ts';
import { openApiDocument } from './openapi.ts';
import { ADMIN_BASE, type Operation, operation } from './operation.ts';
import { PLAN_OPERATIONS } from './plan-operations.ts';
import { TENANT_OPERATIONS } from './tenant-operations.ts';
import { USAGE_OPERATIONS } from './usage-operations.ts';

const DATA_OPERATIONS: readonly Operation[] = [
  ...PLAN_OPERATIONS,
  ...TENANT_OPERATIONS,
  ...KEY_OPERATIONS,
  ...USAGE_OPERATIONS,
];

const ADMIN_OPERATIONS: readonly Operation[] = [
  ...DATA_OPERATIONS,
  operation({
    method: 'GET',
    path: '/openapi.json',
    summary: 'This description',
    status: 200,
    response: z.record(z.string(), z.unknown()),
    run: async () => openApiDocument(DATA_OPERATIONS),
  }),
];

/** Everything under /admin/v1. Each of them asks for an admin key before it does anything. */
export const ADMIN_ROUTES: readonly RouteSpec[] = ADMIN_OPERATIONS.map(({ method, path, handle }) => ({
  method,
  path: ADMIN_BASE + path.replace('{id}', ':rest'),
  handler: handle,
}));

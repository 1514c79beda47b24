import * as z from 'zod';
import type { Operation } from '../operations/operation.ts';
import { adminOpenApiDocument } from './admin-document.ts';
import { adminOperation } from './admin-operation.ts';
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

/** All operations under /admin/v1. Each of them requires an admin key. */
export const ADMIN_OPERATIONS: readonly Operation[] = [
  ...DATA_OPERATIONS,
  adminOperation('GET', '/openapi.json', {
    summary: 'Show this document',
    roles: ['billing', 'read-only', 'tenant'],
    response: z.record(z.string(), z.unknown()),
    run: () => adminOpenApiDocument(DATA_OPERATIONS),
  }),
];

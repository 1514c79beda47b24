import { DAY_MS } from '@continuo/limits/usage/usage-sums.ts';
import { listOf, pageQuery } from '@continuo/shared/account-fields.ts';
import { always } from '@continuo/shared/json-fields.ts';
import { day } from '@continuo/shared/usage-queries.ts';
import * as z from 'zod';
import type { Operation } from '../operations/operation.ts';
import { listEntries, type NumberedEntry } from '../tenants/audit-log.ts';
import { page } from './admin-objects.ts';
import { adminOperation } from './admin-operation.ts';
import { daysOf } from './usage-operations.ts';

const auditQuery = pageQuery.extend({
  from: day.optional().describe('First UTC day, inclusive. Default: 30 days before `to`.'),
  to: day.optional().describe('Last UTC day, inclusive. Default: today.'),
  tenant: z.string().optional().describe('Only changes of this tenant.'),
  key: z.string().optional().describe('Only changes by this key.'),
  action: z.string().optional().describe('Only this action, such as createKey.'),
  search: z.string().optional().describe('Only entries whose target or new values have this text.'),
  after: z
    .string()
    .regex(/^\d{0,15}$/, 'expected the last id of a page')
    .default('')
    .describe('Last id of the previous page.'),
});
const auditObject = z.object({
  object: always('audit_entry'),
  id: z.string().describe('Number of the entry; later entries have larger ones.'),
  created_at: z.int().describe('Time of the change in Unix seconds.'),
  key: z.string().describe('Id of the key that made the change.'),
  key_tenant: z.string().describe('Id of the tenant of that key.'),
  address: z.string().nullable().describe('Network address of the caller; null = erased.'),
  request_id: z.string().describe('Id of the request in the logs.'),
  action: z.string().describe('Operation, such as changeTenant.'),
  target: z.string().describe('Id of the changed record.'),
  tenant: z.string().nullable().describe('Id of the tenant that it concerns; null = none.'),
  changes: z.record(z.string(), z.unknown()).nullable().describe('The new values; null = erased.'),
});

const showEntry = (entry: NumberedEntry): z.infer<typeof auditObject> => ({
  object: 'audit_entry',
  id: String(entry.id),
  created_at: Math.floor(entry.at / 1000),
  key: entry.actor,
  key_tenant: entry.actorTenant,
  address: entry.address,
  request_id: entry.requestId,
  action: entry.action,
  target: entry.target,
  tenant: entry.tenantId,
  changes: entry.changes && { ...entry.changes },
});

export const AUDIT_OPERATIONS: readonly Operation[] = [
  adminOperation('GET', '/audit', {
    summary: 'Show the changes of plans, tenants and keys, new ones first',
    roles: ['billing', 'read-only', 'tenant'],
    query: auditQuery,
    response: listOf(auditObject),
    async run({ query, tenantId }, { env, now }) {
      const { from, to } = daysOf(query, now());
      const filter = {
        from: Date.parse(from),
        to: Date.parse(to) + DAY_MS,
        tenantId: tenantId ?? query.tenant ?? null,
        actor: query.key ?? null,
        action: query.action ?? null,
        search: query.search || null,
      };
      const before = Number(query.after || Number.MAX_SAFE_INTEGER);
      const entries = await listEntries(env.DB, filter, before, query.limit + 1);
      return page(entries, query.limit, showEntry);
    },
  }),
];

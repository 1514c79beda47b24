import type { AuditEntry } from '../../../worker/tenants/audit-log.ts';

/** For tests of the stores. */
export const ENTRY: AuditEntry = {
  at: 0,
  actor: 'k',
  actorTenant: 'operator',
  address: null,
  requestId: 'r',
  action: 'test',
  target: 't',
  tenantId: null,
  changes: {},
};

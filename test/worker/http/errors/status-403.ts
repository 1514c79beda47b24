import { admin, tenantWithKey } from '../../admin/admin-client.ts';
import type { ErrorCase } from './case.ts';

const type = 'permission_error';
const body = { model: 'default', prompt: 'Hi' };
const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });

export const STATUS_403: readonly ErrorCase[] = [
  {
    name: 'a key without the scope completions',
    send: async (worker) => {
      const { key } = await tenantWithKey(worker, 'no-scope', {}, { scopes: ['models'] });
      return worker.post(body, bearer(key));
    },
    type,
    code: 'insufficient_scope',
    param: null,
    message: /lacks the scope 'completions'/,
  },
  {
    name: 'a key that may not be used from the address',
    send: async (worker) => {
      const { key } = await tenantWithKey(worker, 'elsewhere', {}, { allowed_addresses: ['192.0.2.1'] });
      return worker.post(body, bearer(key));
    },
    type,
    code: 'address_not_allowed',
    param: null,
    message: /may not be used from this network address/,
  },
  {
    name: 'a suspended tenant',
    send: async (worker) => {
      const { key } = await tenantWithKey(worker, 'suspended');
      await admin(worker, 'PATCH', '/tenants/suspended', { suspended: true });
      return worker.post(body, bearer(key));
    },
    type,
    code: 'tenant_suspended',
    param: null,
    message: /suspended/,
  },
];

import { admin, tenantWithKey } from '../../admin/admin-client.ts';
import type { ErrorCase } from './case.ts';

const type = 'invalid_request_error';
const withKey =
  (authorization: string): ErrorCase['send'] =>
  (worker) =>
    worker.post({ model: 'default', prompt: 'Hi' }, { headers: { authorization } });

export const STATUS_401: readonly ErrorCase[] = [
  {
    name: 'no key',
    send: (worker) => fetch(`${worker.url}/v1/completions`, { method: 'POST', body: '{}' }),
    type,
    code: 'missing_api_key',
    param: null,
    message: /API key/,
    headers: { 'www-authenticate': 'Bearer' },
  },
  {
    name: 'another scheme',
    send: withKey('Basic dTpw'),
    type,
    code: 'missing_api_key',
    param: null,
    message: /API key/,
    headers: { 'www-authenticate': 'Bearer' },
  },
  {
    name: 'a wrong key, which the message does not repeat',
    send: withKey('Bearer sk-wrong-key'),
    type,
    code: 'invalid_api_key',
    param: null,
    message: /^(?!.*sk-wrong-key).*Incorrect API key/,
    headers: { 'www-authenticate': 'Bearer' },
  },
  {
    name: 'a revoked key, with the same response as a wrong key',
    send: async (worker) => {
      const { key, keyId } = await tenantWithKey(worker, 'revoked');
      await admin(worker, 'DELETE', `/keys/${keyId}`);
      return worker.post({ model: 'default', prompt: 'Hi' }, { headers: { authorization: `Bearer ${key}` } });
    },
    type,
    code: 'invalid_api_key',
    param: null,
    message: /^Incorrect API key provided\.$/,
    headers: { 'www-authenticate': 'Bearer' },
  },
];

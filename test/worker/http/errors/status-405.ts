import type { ErrorCase } from './case.ts';

const row = (method: string, path: string, allow: string): ErrorCase => ({
  name: `${method} ${path}`,
  send: (worker) => fetch(worker.url + path, { method }),
  type: 'invalid_request_error',
  code: 'method_not_supported',
  param: null,
  message: new RegExp(`Not allowed to ${method} on ${path} .*${allow}`),
  headers: { allow },
});

export const STATUS_405: readonly ErrorCase[] = [
  row('GET', '/v1/completions', 'POST'),
  row('DELETE', '/api/v1/completions', 'POST'),
  row('POST', '/v1/models', 'GET'),
  row('PUT', '/v1/models/some/model', 'GET'),
  row('POST', '/health', 'GET'),
];

import type { ErrorCase } from './case.ts';

const row = (name: string, headers: Record<string, string>): ErrorCase => ({
  name,
  send: (worker) => worker.post('{"model":"default","prompt":"Hi"}', { headers }),
  type: 'invalid_request_error',
  code: 'unsupported_media_type',
  param: null,
  message: /expected 'application\/json'/,
});

export const STATUS_415: readonly ErrorCase[] = [
  row('a form', { 'content-type': 'application/x-www-form-urlencoded' }),
  row('plain text', { 'content-type': 'text/plain; charset=utf-8' }),
  row('nothing', { 'content-type': '' }),
];

import { type ErrorCase, refusedByOrigin } from './case.ts';

const type = 'server_error';
const origin = (code: string, message = 'Said by the origin.') => ({ message, type, param: null, code });

export const STATUS_504: readonly ErrorCase[] = [
  {
    name: 'the origin says it took too long',
    send: refusedByOrigin(504, origin('upstream_timeout')),
    type,
    code: 'upstream_timeout',
    param: null,
    message: /Said by the origin/,
    headers: { 'retry-after': '1' },
  },
  {
    name: 'the origin does not answer at all',
    send: (worker, fake) => {
      fake.script = () => {};
      return worker.post({ model: 'default', prompt: 'Hi' });
    },
    type,
    code: 'upstream_timeout',
    param: null,
    message: /did not answer in time/,
    headers: { 'retry-after': '1' },
  },
];

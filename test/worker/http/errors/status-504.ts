import { type ErrorCase, posting, refusedByOrigin, serverError, toWorkerWith } from './case.ts';

const type = 'server_error';

export const STATUS_504: readonly ErrorCase[] = [
  {
    name: 'the origin reports a time-out',
    send: refusedByOrigin(504, serverError('upstream_timeout')),
    type,
    code: 'upstream_timeout',
    param: null,
    message: /Said by the origin/,
    headers: { 'retry-after': '1' },
  },
  {
    name: 'the origin does not answer',
    send: (worker, fake) => {
      fake.script = () => {};
      return toWorkerWith({ ACCEPT_TIMEOUT_MS: '500' }, posting({}))(worker, fake);
    },
    type,
    code: 'upstream_timeout',
    param: null,
    message: /did not answer in time/,
    headers: { 'retry-after': '1' },
  },
];

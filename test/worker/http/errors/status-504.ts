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
  {
    name: 'the request uses its whole time limit, which clients must not repeat',
    send: (worker, fake) => {
      fake.script = async (_, wire) => {
        await new Promise((resolve) => setTimeout(resolve, 300));
        wire.refuse(504, { error: serverError('upstream_timeout') });
      };
      return toWorkerWith({ REQUEST_TIMEOUT_MS: '200' }, posting({}))(worker, fake);
    },
    type,
    code: 'upstream_timeout',
    param: null,
    message: /Said by the origin/,
    headers: { 'x-should-retry': 'false', 'retry-after': null },
  },
];

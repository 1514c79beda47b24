import { type ErrorCase, refusedByOrigin } from './case.ts';

const type = 'server_error';
const origin = (code: string, message = 'Said by the origin.') => ({ message, type, param: null, code });

const broken = (name: string, send: ErrorCase['send']): ErrorCase => ({
  name,
  send,
  type,
  code: 'upstream_error',
  param: null,
  message: /model server/,
  headers: { 'retry-after': '1', 'x-should-retry': 'true' },
});

export const STATUS_502: readonly ErrorCase[] = [
  broken('the origin has a bug', refusedByOrigin(500, origin('internal_error'))),
  broken('something else answers in its place', refusedByOrigin(503, '<html>Bad gateway</html>')),
  broken('the origin speaks no error of ours', refusedByOrigin(400, origin('confetti'))),
  broken(
    'the origin does not know our signature, which is no fault of the caller',
    refusedByOrigin(401, {
      message: 'Bad signature.',
      type: 'invalid_request_error',
      param: null,
      code: 'invalid_api_key',
    }),
  ),
  broken('the origin hangs up before it answers', (worker, fake) => {
    fake.script = (_, wire) => wire.die();
    return worker.post({ model: 'default', prompt: 'Hi' });
  }),
];

export const STATUS_503: readonly ErrorCase[] = [
  {
    name: 'the queue is full: how long to wait is passed on',
    send: refusedByOrigin(503, origin('server_is_overloaded'), {
      'retry-after': '7',
      'retry-after-ms': '6500',
    }),
    type,
    code: 'server_is_overloaded',
    param: null,
    message: /Said by the origin/,
    headers: { 'retry-after': '7', 'retry-after-ms': '6500', 'x-should-retry': 'true' },
  },
  {
    name: 'the model is loading',
    send: refusedByOrigin(503, origin('model_loading')),
    type,
    code: 'model_loading',
    param: null,
    message: /Said by the origin/,
    headers: { 'retry-after': '1' },
  },
];

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

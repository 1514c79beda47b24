import { type ErrorCase, refusedByOrigin, serverError } from './case.ts';

const type = 'server_error';

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
  broken('the origin has a bug', refusedByOrigin(500, serverError('internal_error'))),
  broken('something else answers in its place', refusedByOrigin(503, '<html>Bad gateway</html>')),
  broken('the origin speaks no error of ours', refusedByOrigin(400, serverError('confetti'))),
  broken(
    'the origin rejects the Worker’s signature',
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

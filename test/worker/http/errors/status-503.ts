import { type ErrorCase, refusedByOrigin, serverError } from './case.ts';

const type = 'server_error';

export const STATUS_503: readonly ErrorCase[] = [
  {
    name: 'the queue is full, with the origin’s retry-after',
    send: refusedByOrigin(503, serverError('server_is_overloaded'), {
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
    send: refusedByOrigin(503, serverError('model_loading')),
    type,
    code: 'model_loading',
    param: null,
    message: /Said by the origin/,
    headers: { 'retry-after': '1' },
  },
  {
    name: 'the model cannot be loaded',
    send: refusedByOrigin(503, serverError('model_unavailable'), { 'x-should-retry': 'false' }),
    type,
    code: 'model_unavailable',
    param: null,
    message: /Said by the origin/,
    headers: { 'x-should-retry': 'false' },
  },
];

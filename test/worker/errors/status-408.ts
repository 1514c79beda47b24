import { type ErrorCase, sending } from './case.ts';

/** A body of which only the beginning comes. */
const stalled = (): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode('{"model":')),
  });

export const STATUS_408: readonly ErrorCase[] = [
  {
    name: 'a body that does not arrive in time',
    send: sending(stalled),
    type: 'invalid_request_error',
    code: 'request_timeout',
    param: null,
    message: /did not arrive in time/,
    headers: { 'x-should-retry': 'true' },
  },
];

import { request as httpRequest } from 'node:http';
import { text } from 'node:stream/consumers';
import { KEY } from '../../support/worker.ts';
import { type ErrorCase, sending, toWorkerWith } from './case.ts';

/** A body that stops after its beginning. */
const stalled = (): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode('{"model":')),
  });

/** The same with a content-length that promises more. */
const cutShort: ErrorCase['send'] = ({ url }) =>
  new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${KEY}`,
      'content-type': 'application/json',
      'content-length': '100',
    };
    const outgoing = httpRequest(`${url}/v1/completions`, { method: 'POST', headers }, async (answer) => {
      const init = { status: answer.statusCode ?? 0, headers: answer.headers as Record<string, string> };
      resolve(new Response(await text(answer), init));
      outgoing.destroy();
    });
    outgoing.on('error', reject).write('{"model":');
  });

const late = (name: string, send: ErrorCase['send']): ErrorCase => ({
  name,
  send: toWorkerWith({ BODY_TIMEOUT_MS: '300' }, send),
  type: 'invalid_request_error',
  code: 'request_timeout',
  param: null,
  message: /did not arrive in time/,
  headers: { 'x-should-retry': 'true' },
});

export const STATUS_408: readonly ErrorCase[] = [
  late('a body that does not arrive in time', sending(stalled)),
  late(
    'a body with an idempotency key that does not arrive in time',
    sending(stalled, { 'idempotency-key': 'stalled' }),
  ),
  late('a body that does not become as long as it claims', cutShort),
];

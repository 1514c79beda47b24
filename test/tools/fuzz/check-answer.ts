import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorResponseBody } from '../../../shared/completion-response.ts';
import { payloadsOf } from '../../worker/support/sse.ts';
import type { FuzzRequest } from './requests.ts';

export interface Target {
  readonly url: string;
  readonly apiKey: string;
}

/** Longer answers count as hung. The queue of a busy machine may hold a request for a while. */
const ANSWER_WITHIN_MS = 120_000;
/** Bytes that are no whole request get no answer: workerd waits for the rest. */
const RAW_WITHIN_MS = 2_000;

/** A violated invariant. */
class Violation extends Error {}

function require(holds: boolean, what: string): void {
  if (!holds) throw new Violation(what);
}

/**
 * Sends a request and checks its answer.
 * @returns the status; 0 if the client left or got no answer to incomplete bytes
 * @throws Error that says which invariant does not hold
 */
export function sendAndCheck(request: FuzzRequest, target: Target): Promise<number> {
  return request.kind === 'raw' ? checkRaw(request.bytes, target) : checkHttp(request, target);
}

async function checkHttp(
  { method, path, headers, body, leaveMs }: Extract<FuzzRequest, { kind: 'http' }>,
  { url, apiKey }: Target,
): Promise<number> {
  const hung = AbortSignal.timeout(ANSWER_WITHIN_MS);
  const leave = leaveMs === null ? null : AbortSignal.timeout(leaveMs);
  try {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${apiKey}`, ...headers },
      redirect: 'manual',
      signal: leave === null ? hung : AbortSignal.any([hung, leave]),
      ...(body === null ? {} : { body: Buffer.from(body) }),
    });
    const text = await response.text();
    checkAnswer(response.status, response.headers, text, method);
    return response.status;
  } catch (thrown) {
    if (thrown instanceof Violation || leave?.aborted !== true) throw thrown;
    return 0;
  }
}

/** Readers of lines split at these. */
const LINE_SEPARATORS = /[\u0085\u2028\u2029]/;

function checkAnswer(status: number, headers: Headers, text: string, method: string): void {
  const shown = `${status} ${text.slice(0, 300)}`;
  require(headers.get('x-request-id') !== null, `no x-request-id: ${shown}`);
  const type = headers.get('content-type') ?? '';
  const isJson = /^(application\/json|text\/event-stream)/.test(type);
  require(!isJson || !LINE_SEPARATORS.test(text), `raw line separators: ${shown}`);
  if (type.startsWith('text/event-stream')) {
    require(status === 200, shown);
    // A stream has whole events only, and its last line is the end.
    payloadsOf(text);
    return;
  }
  if (status < 400) return;
  require(status < 500 || (status === 503 && headers.get('retry-after') !== null), `server error: ${shown}`);
  if (method === 'HEAD') return;
  const { error } = errorResponseBody.parse(JSON.parse(text));
  require(error.message.length < 2_000, `long message: ${shown}`);
}

async function checkRaw(bytes: Uint8Array, { url }: Target): Promise<number> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let answer = '';
  socket.setEncoding('latin1').on('data', (text: string) => {
    answer += text;
  });
  const closed = once(socket, 'close').catch(() => {});
  socket.on('error', () => {});
  socket.write(bytes);
  const waiting = new AbortController();
  await Promise.race([closed, sleep(RAW_WITHIN_MS, null, waiting).catch(() => {})]);
  waiting.abort();
  socket.destroy();
  const status = Number(/^HTTP\/1\.\d (\d{3})/.exec(answer)?.[1] ?? 0);
  // workerd itself refuses some bytes before they reach the Worker, such as CONNECT.
  if (!/^x-request-id:/im.test(answer)) return status;
  const shown = answer.slice(0, 400);
  require(status < 500 || status === 503, `server error: ${shown}`);
  const isHead = Buffer.from(bytes).toString('latin1').startsWith('HEAD ');
  require(status < 400 || isHead || answer.includes('"error":{'), `no error shape: ${shown}`);
  return status;
}

import * as fc from 'fast-check';
import { bodies } from './bodies.ts';

/** A request of the fuzz run. */
export type FuzzRequest =
  | {
      readonly kind: 'http';
      readonly method: string;
      readonly path: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly body: Uint8Array | null;
      /** Milliseconds after which the client disconnects; null = it reads the whole answer. */
      readonly leaveMs: number | null;
    }
  /** Bytes that need not be HTTP. */
  | { readonly kind: 'raw'; readonly bytes: Uint8Array };

const paths = fc.oneof(
  fc.constantFrom(
    ...['/v1/completions', '/api/v1/completions', '/v1/fim/completions', '/completions', '//v1/completions'],
    ...[
      '/v1/models',
      '/v1/models/default',
      '/v1/models/%E0%A4%A',
      '/health',
      '/',
      '/openapi.json',
      '/assets/x.js',
    ],
    ...['/tokenize', '/detokenize', '/tokenizer_info', '/v1/completions/x/stream', '/v1/chat/completions'],
    ...[
      '/admin/v1/tenants',
      '/admin/v1/keys/x',
      '/admin/v1/usage?from=2026-02-30',
      '/admin/v1/plans?limit=-1',
    ],
  ),
  fc.string({ maxLength: 30 }).map((text) => `/${encodeURIComponent(text.toWellFormed())}`),
);

const methods = fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS');

const values = fc.oneof(
  fc.constantFrom(
    '',
    '*',
    'true',
    'gzip',
    'null',
    '-1',
    '1e9',
    'x'.repeat(3_000),
    'openai',
    'llamacpp',
    'vllm',
  ),
  fc.stringMatching(/^[!-~]{0,40}$/),
);

const headers = fc.dictionary(
  fc.constantFrom(
    ...['content-type', 'accept', 'x-dialect', 'x-resumable', 'idempotency-key', 'last-event-id', 'origin'],
    ...[
      'traceparent',
      'x-request-id',
      'x-api-key',
      'content-encoding',
      'range',
      'if-none-match',
      'x-forwarded-for',
    ],
  ),
  values,
  { maxKeys: 3 },
);

const leaving = fc.oneof({ weight: 24, arbitrary: fc.constant(null) }, fc.integer({ min: 0, max: 60 }));

const completion = fc.record({ body: bodies, leaveMs: leaving }).map(
  ({ body, leaveMs }): FuzzRequest => ({
    kind: 'http',
    method: 'POST',
    path: '/v1/completions',
    leaveMs,
    body,
    headers: { 'content-type': 'application/json' },
  }),
);

const anyHttp = fc.record({ method: methods, path: paths, headers, body: bodies, leaveMs: leaving }).map(
  ({ method, path, headers: sent, body, leaveMs }): FuzzRequest => ({
    kind: 'http',
    method,
    path,
    headers: { 'content-type': 'application/json', ...sent },
    leaveMs,
    body: method === 'GET' || method === 'HEAD' ? null : body,
  }),
);

/** Lines of a request head, correct and incorrect ones. */
const line = fc.oneof(
  fc.constantFrom(
    ...[
      'host: a b',
      'host: x',
      'Host: y',
      'host: [::1',
      'host: ',
      'host: x:99999',
      'host: a@b',
      'host: a/b?c#d',
    ],
    ...[
      'content-length: 5',
      'content-length: -1',
      'content-length: 0',
      'transfer-encoding: chunked',
      'te: x',
    ],
    ...[
      'connection: close',
      'upgrade: websocket',
      'expect: 100-continue',
      'authorization: Bearer',
      ': x',
      'x',
    ],
    ...['content-type: application/json', `x-long: ${'y'.repeat(20_000)}`, 'x-null: \0', 'x-high: \u00ff'],
  ),
  fc.string({ maxLength: 40 }),
);

const raw = fc
  .record({
    method: fc.oneof(methods, fc.constantFrom('CONNECT', 'TRACE', 'get', 'P ST', '')),
    target: fc.oneof(
      paths,
      fc.constantFrom('*', 'x:443', 'http://[', 'http://x/v1/models', 'a b', '', '/%', '/\u00ff'),
    ),
    version: fc.constantFrom('HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0', 'HTTP/9', ''),
    lines: fc.array(line, { maxLength: 4 }),
    body: fc.oneof(fc.constant(new Uint8Array()), fc.uint8Array({ maxLength: 40 })),
  })
  .map(({ method, target, version, lines, body }): FuzzRequest => {
    const head = [`${method} ${target} ${version}`, ...lines, 'connection: close', '', ''].join('\r\n');
    return { kind: 'raw', bytes: Buffer.concat([Buffer.from(head, 'latin1'), body]) };
  });

/** Requests of all kinds. Most are completions. */
export const requests: fc.Arbitrary<FuzzRequest> = fc.oneof(
  { weight: 16, arbitrary: completion },
  { weight: 3, arbitrary: anyHttp },
  { weight: 1, arbitrary: raw },
);

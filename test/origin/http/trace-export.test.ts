import { json } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { createTraceExport } from '../../../origin/http/trace-export.ts';
import { createLog } from '../../../origin/process/log.ts';
import { request } from '../../support/generation-request.ts';
import { serve } from '../../support/local-server.ts';
import { freePort } from '../../support/system.ts';
import { RunningOrigin } from './running-origin.ts';

interface Received {
  readonly path: string | undefined;
  readonly token: unknown;
  readonly body: {
    readonly resourceSpans: readonly {
      readonly resource: unknown;
      readonly scopeSpans: readonly { readonly spans: readonly Span[] }[];
    }[];
  };
}
interface Span {
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, string>> }[];
  readonly [field: string]: unknown;
}

/** A collector that keeps what it receives. */
async function collector(status = 200) {
  const received: Received[] = [];
  const { url, stop } = await serve(async (message, response) => {
    const body = (await json(message)) as Received['body'];
    received.push({ path: message.url, token: message.headers['x-token'], body });
    response.writeHead(status).end('{}');
  });
  onTestFinished(stop);
  return { received, url };
}

function exportTo(url: string, more: Readonly<Record<string, string>> = {}) {
  const lines: string[] = [];
  const log = createLog('info', { write: (line: string) => void lines.push(line) });
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: url, ...more };
  const traces = createTraceExport(environment, { fetch, log, randomHex: (bytes) => 'ab'.repeat(bytes) });
  return { traces: traces!, lines };
}

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const traceparent = (flags: string) => `00-${TRACE}-${PARENT}-${flags}`;

const spansOf = (received: readonly Received[]) =>
  received.flatMap(({ body }) => body.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans[0]!.spans));

test('a generation of a sampled trace becomes a span below the caller’s, without its texts', async () => {
  const { received, url } = await collector();
  const { traces } = exportTo(url, {
    OTEL_EXPORTER_OTLP_HEADERS: 'x-token=a%20b',
    OTEL_SERVICE_NAME: 'edge-1',
    OTEL_SEMCONV_STABILITY_OPT_IN: 'http,gen_ai_latest_experimental',
  });
  const origin = await (await RunningOrigin.start({ traces })).ready();
  onTestFinished(() => origin.stop());
  const send = async (flags: string) =>
    (
      await origin.call('/generate', {
        body: request({ prompts: ['SECRET TEXT'] }),
        headers: { traceparent: traceparent(flags) },
      })
    ).text();
  await send('00');
  await send('01');
  const flushed = async () => {
    await traces.flush();
    return received.length;
  };
  await expect.poll(flushed).toBe(1);
  expect(received[0]).toMatchObject({ path: '/v1/traces', token: 'a b' });
  expect(JSON.stringify(received[0]!.body.resourceSpans[0]!.resource)).toContain('edge-1');
  const [span, ...others] = spansOf(received);
  expect(others).toEqual([]);
  expect(span).toMatchObject({
    traceId: TRACE,
    parentSpanId: PARENT,
    spanId: 'ab'.repeat(8),
    name: 'text_completion tiny',
    kind: 2,
    status: {},
  });
  expect(BigInt(span!.endTimeUnixNano as string)).toBeGreaterThanOrEqual(
    BigInt(span!.startTimeUnixNano as string),
  );
  const attributes = Object.fromEntries(
    span!.attributes.map(({ key, value }) => [key, Object.values(value)[0]]),
  );
  expect(attributes).toMatchObject({
    'gen_ai.operation.name': 'text_completion',
    'gen_ai.request.model': 'tiny',
    'gen_ai.usage.input_tokens': '3',
    'gen_ai.usage.output_tokens': '2',
    'continuo.outcome': 'done',
  });
  expect(JSON.stringify(received)).not.toContain('SECRET');
});

const GENERATION = {
  traceparent: traceparent('01'),
  requestId: 'req_1',
  model: 'tiny',
  startedAt: 1000,
  endedAt: 2000,
  outcome: 'engine_error',
  usage: { promptTokens: 3, cachedTokens: 0, completionTokens: 2 },
};

test('without the opt-in there are no attributes of the unstable conventions; a failure has its code', async () => {
  const { received, url } = await collector();
  const { traces } = exportTo(url);
  traces.record(GENERATION);
  await traces.flush();
  const [span] = spansOf(received);
  expect(span?.status).toEqual({ code: 2, message: 'engine_error' });
  expect(span?.startTimeUnixNano).toBe('1000000000');
  const keys = span!.attributes.map(({ key }) => key);
  expect(keys).toEqual(['continuo.request_id', 'continuo.outcome', 'continuo.model', 'error.type']);
});

test('a collector that refuses is logged once, and what waits is bounded', async () => {
  const refusing = await collector(503);
  const { traces, lines } = exportTo(refusing.url);
  for (let count = 0; count < 3; count += 1) {
    traces.record(GENERATION);
    await traces.flush();
  }
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain('status 503');
  for (let count = 0; count < 3_000; count += 1) traces.record(GENERATION);
  await traces.flush();
  expect(spansOf(refusing.received.slice(3))).toHaveLength(2_048);
});

test('a collector that cannot be reached is logged once, with its address but no secret, and with the reason', async () => {
  const address = `http://localhost:${await freePort()}/v1/traces`;
  const { traces, lines } = exportTo('', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${address}?token=SECRET` });
  for (let count = 0; count < 2; count += 1) {
    traces.record(GENERATION);
    await traces.flush();
  }
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0]!)).toMatchObject({ collector: address, why: 'ECONNREFUSED' });
});

test('without a collector nothing is exported, and a malformed address is named', () => {
  expect(exportTo('').traces).toBeNull();
  expect(() => exportTo('collector')).toThrow("OTEL_EXPORTER_OTLP_ENDPOINT: 'collector/v1/traces'");
  // An address without its scheme is one of the scheme `collector:` to a parser.
  expect(() => exportTo('collector:4318')).toThrow('OTEL_EXPORTER_OTLP_ENDPOINT: ');
  // Fetch would refuse each batch and quote the password in its message.
  expect(() => exportTo('http://user:SECRET@collector:4318')).toThrow(
    /^OTEL_EXPORTER_OTLP_ENDPOINT: (?!.*SECRET).*OTEL_EXPORTER_OTLP_HEADERS/,
  );
  const own = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'collector:4318/v1/traces' };
  expect(() => exportTo('http://collector:4318', own)).toThrow('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: ');
  expect(() => exportTo('http://collector:4318', { OTEL_EXPORTER_OTLP_HEADERS: 'key=50%' })).toThrow(
    /^OTEL_EXPORTER_OTLP_HEADERS: [^%]*$/,
  );
});

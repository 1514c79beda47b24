import { errorCode, errorMessage } from '@continuo/shared/error-details.ts';
import type { Usage } from '@continuo/shared/generation.ts';
import type { Logger } from '../process/log.ts';

/** Sends a span per generation to an OpenTelemetry collector: OTLP over HTTP as JSON without texts. */

const FLUSH_MS = 5_000;
/** Spans that wait for the collector; more are dropped. */
const MAX_WAITING = 2_048;
const SEND_TIMEOUT_MS = 10_000;
/** Numbers of OTLP. */
const SERVER_KIND = 2;
const ERROR_STATUS = 2;

interface Generation {
  /** The header of the request. A span is sent only for a sampled trace. */
  readonly traceparent: string | undefined;
  readonly requestId: string;
  readonly model: string;
  /** Unix milliseconds. */
  readonly startedAt: number;
  readonly endedAt: number;
  /** `done`, an error code, or `aborted`. */
  readonly outcome: string;
  readonly usage: Usage;
}

interface Tools {
  readonly fetch: typeof fetch;
  readonly log: Logger;
  /** Returns random hexadecimal digits. */
  readonly randomHex: (bytes: number) => string;
}

type Variables = Readonly<Record<string, string | undefined>>;

export interface TraceExport {
  record(generation: Generation): void;
  /** Sends what waits. */
  flush(): Promise<void>;
}

const encode = (attributes: Readonly<Record<string, string | number>>) =>
  Object.entries(attributes).map(([key, value]) => ({
    key,
    // OTLP writes 64-bit integers as text.
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }));

/** Attributes by the conventions for generative models, which may still change. */
const genAiAttributes = ({ model, usage }: Generation) => ({
  'gen_ai.operation.name': 'text_completion',
  'gen_ai.provider.name': 'continuo',
  'gen_ai.request.model': model,
  'gen_ai.usage.input_tokens': usage.promptTokens,
  'gen_ai.usage.output_tokens': usage.completionTokens,
});

function collectorOf(environment: Variables): URL | null {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: whole } = environment;
  const url = whole || (base && `${base.replace(/\/$/, '')}/v1/traces`);
  if (!url) return null;
  const name = whole ? 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT' : 'OTEL_EXPORTER_OTLP_ENDPOINT';
  const address = URL.parse(url);
  if (!address || !/^https?:$/.test(address.protocol))
    throw new Error(`${name}: '${url}' is no http address`);
  // `fetch` would refuse each batch, and quote the password.
  if (address.username || address.password)
    throw new Error(`${name}: put user and password into OTEL_EXPORTER_OTLP_HEADERS`);
  return address;
}

function headersOf(text: string): Headers {
  try {
    const pairs = [...text.matchAll(/([^=,\s]+)\s*=\s*([^,]*)/g)];
    const decoded = pairs.map(([, name, value]): [string, string] => [name!, decodeURIComponent(value!)]);
    return new Headers([['content-type', 'application/json'], ...decoded]);
  } catch {
    // The values may be secrets.
    throw new Error('OTEL_EXPORTER_OTLP_HEADERS: expected pairs such as api-key=URL-encoded-value');
  }
}

/** The exporter by OpenTelemetry's variables; null without one. @throws Error that names the variable */
export function createTraceExport(
  environment: Variables,
  { fetch, log, randomHex }: Tools,
): TraceExport | null {
  const url = collectorOf(environment);
  if (url === null) return null;
  const headers = headersOf(environment.OTEL_EXPORTER_OTLP_HEADERS ?? '');
  const isGenAi = /\bgen_ai_latest_experimental\b/.test(environment.OTEL_SEMCONV_STABILITY_OPT_IN ?? '');
  const resource = {
    attributes: encode({ 'service.name': environment.OTEL_SERVICE_NAME || 'continuo-origin' }),
  };
  let waiting: object[] = [];
  let timer: NodeJS.Timeout | null = null;
  let hasFailed = false;

  const flush = async (): Promise<void> => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const spans = waiting;
    if (spans.length === 0) return;
    waiting = [];
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers,
        body: JSON.stringify({
          resourceSpans: [{ resource, scopeSpans: [{ scope: { name: 'continuo' }, spans }] }],
        }),
        signal: AbortSignal.timeout(SEND_TIMEOUT_MS),
      });
      await response.body?.cancel();
      if (!response.ok) throw new Error(`status ${response.status}`);
      hasFailed = false;
    } catch (error) {
      // Dropped. The first failure of a row is logged. That `fetch` has failed says nothing, but its cause
      // does.
      const { cause = error } = error as Error;
      const why = errorCode(cause) ?? errorMessage(cause);
      if (!hasFailed) log.warn({ collector: url.origin + url.pathname, why }, 'traces were not sent');
      hasFailed = true;
    }
  };

  return {
    record(generation) {
      const { traceparent = '', requestId, startedAt, endedAt, outcome, model } = generation;
      const [, traceId, parentSpanId] =
        /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f][13579bdf]$/.exec(traceparent) ?? [];
      if (traceId === undefined || waiting.length >= MAX_WAITING) return;
      const failed = outcome !== 'done' && outcome !== 'aborted';
      waiting.push({
        traceId,
        parentSpanId,
        spanId: randomHex(8),
        name: `text_completion ${model}`,
        kind: SERVER_KIND,
        startTimeUnixNano: `${Math.round(startedAt)}000000`,
        endTimeUnixNano: `${Math.round(endedAt)}000000`,
        attributes: encode({
          'continuo.request_id': requestId,
          'continuo.outcome': outcome,
          ...(isGenAi ? genAiAttributes(generation) : { 'continuo.model': model }),
          ...(failed && { 'error.type': outcome }),
        }),
        status: failed ? { code: ERROR_STATUS, message: outcome } : {},
      });
      timer ??= setTimeout(() => void flush(), FLUSH_MS).unref();
    },
    flush,
  };
}

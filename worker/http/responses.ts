import { headerList, IGNORED_KEYWORDS_HEADER } from '@continuo/shared/capabilities.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { clientJson } from '@continuo/shared/framing.ts';
import { corsHeaders } from './cors.ts';
import { IGNORED_FIELDS_HEADER, REQUEST_ID_HEADER } from './headers.ts';
import type { Reply, RequestContext } from './request-context.ts';

export function jsonResponse(body: unknown, init: ResponseInit = {}): Response {
  return jsonText(clientJson(body), init);
}

/** Like `jsonResponse`, for a body that is JSON text without line separators already. */
export function jsonText(text: string | ReadableStream<Uint8Array>, init: ResponseInit = {}): Response {
  if (init.headers === undefined) return new Response(text, { ...init, headers: JSON_HEADERS });
  const response = new Response(text, init);
  response.headers.set('content-type', 'application/json');
  return response;
}

const NOT_STORED = 'no-store';

const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': NOT_STORED,
  // Stops reverse proxies from buffering events.
  'x-accel-buffering': 'no',
};

export const eventStreamResponse = (
  body: ReadableStream<Uint8Array> | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Response => new Response(body, { headers: { ...headers, ...EVENT_STREAM_HEADERS } });

/** Clients retry these statuses unless `x-should-retry` forbids it. */
const RETRYABLE: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

/** Upstream failures are usually short, so clients may retry after one second. */
const RETRY_SOON: ReadonlySet<number> = new Set([502, 503, 504]);

/** llama.cpp's type of a loading model. The status as the code does not tell it from overload. */
const LOADING_TYPE = 'unavailable_error';

/** Returns an error's JSON body, with the code as the dialect has it. */
export function errorBody(error: ApiError, code: 'string' | 'status'): unknown {
  const envelope = error.envelope();
  if (code === 'string') return envelope;
  const type = error.code === 'model_loading' ? LOADING_TYPE : envelope.error.type;
  return { error: { ...envelope.error, type, code: error.status } };
}

export function errorResponse(error: ApiError, context: RequestContext): Response {
  const body = errorBody(error, context.reply.dialect.errorCode);
  const response = jsonResponse(body, { status: error.status, headers: error.headers });
  const { headers } = response;
  const final = headers.get('x-should-retry') === 'false';
  if (RETRY_SOON.has(error.status) && !final && !headers.has('retry-after')) headers.set('retry-after', '1');
  if (RETRYABLE.has(error.status) && !headers.has('x-should-retry')) {
    headers.set('x-should-retry', String(error.code !== 'insufficient_quota'));
  }
  return response;
}

/** The response of a deployment with invalid variables or bindings. Only the log says which. */
export function misconfiguredResponse(): Response {
  const error = new ApiError('internal_error', 'This server is not configured correctly.');
  return jsonResponse(error.envelope(), {
    status: error.status,
    headers: { ...SECURITY_HEADERS, 'cache-control': NOT_STORED, 'x-should-retry': 'false' },
  });
}

/** Responses contain only data: browsers must not embed them or guess their type. */
const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'cross-origin',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
};

/** The platform copies them at once, which costs less than to set each. */
const JSON_HEADERS = new Headers({ ...SECURITY_HEADERS, 'content-type': 'application/json' });

/** Returns the headers that say what of the body was ignored. */
export const ignoredHeaders = ({ ignoredKeywords, ignoredFields }: Reply): Record<string, string> => ({
  ...(ignoredKeywords !== null && { [IGNORED_KEYWORDS_HEADER]: ignoredKeywords }),
  ...(ignoredFields.length > 0 && { [IGNORED_FIELDS_HEADER]: headerList(ignoredFields) }),
});

/** Headers that carry a key. */
const KEY_HEADERS = ['authorization', 'x-api-key', 'api-key'];

/** Adds request headers that the response depends on to those that it names already. */
function addVary(headers: Headers, names: readonly string[]): void {
  const named =
    headers
      .get('vary')
      ?.split(',')
      .map((name) => name.trim()) ?? [];
  headers.set('vary', [...new Set([...named, ...names])].join(', '));
}

/**
 * Adds the headers that every response has. The response's headers must be mutable. No cache stores the
 * response to a caller with a key, or an error.
 */
export function addCommonHeaders(response: Response, request: Request, context: RequestContext): void {
  const { headers, status } = response;
  const { settings, reply, caller } = context;
  // The only one of them that a page sets itself.
  const policy = headers.get('content-security-policy');
  // JSON has all of them already.
  if (policy !== SECURITY_HEADERS['content-security-policy']) {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) headers.set(name, value);
    if (policy !== null) headers.set('content-security-policy', policy);
  }
  for (const [name, value] of Object.entries({
    ...reply.limits,
    ...ignoredHeaders(reply),
    ...corsHeaders(request, settings),
  })) {
    headers.set(name, value);
  }
  if (settings.CORS_ORIGINS.length > 0) addVary(headers, ['origin']);
  if (caller.principal !== null || status >= 400) {
    headers.set('cache-control', NOT_STORED);
    addVary(headers, KEY_HEADERS);
  }
  headers.set(REQUEST_ID_HEADER, context.requestId);
  // Cloudflare sets it as well, workerd alone does not: clients with a wrong clock compare times with it.
  headers.set('date', new Date(context.now()).toUTCString());
  headers.set('server-timing', context.timings.header());
}

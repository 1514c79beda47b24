import { hash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { OriginActivity } from '@continuo/shared/activity.ts';
import { CAPABILITIES } from '@continuo/shared/capabilities.ts';
import { bugTrace } from '@continuo/shared/error-details.ts';
import { ApiError, toApiError } from '@continuo/shared/errors.ts';
import { SECRET_ID_HEADER, SIGNATURE_HEADER } from '@continuo/shared/signing.ts';
import { notSigned } from './authentication.ts';
import { readBody } from './body.ts';
import { handleGenerate } from './generation-route.ts';
import { type OriginRouteHandler, type ReceivedRequest, type ServerContext, sendJson } from './route.ts';
import { handleDetokenize, handleTokenize, handleTokenizerInfo } from './tokenizer-routes.ts';

interface Route {
  readonly method: 'GET' | 'POST';
  readonly signed: boolean;
  readonly handle: OriginRouteHandler;
}

const ROUTES: Readonly<Record<string, Route>> = {
  '/generate': { method: 'POST', signed: true, handle: handleGenerate },
  '/tokenize': { method: 'POST', signed: true, handle: handleTokenize },
  '/detokenize': { method: 'POST', signed: true, handle: handleDetokenize },
  '/tokenizer_info': { method: 'GET', signed: true, handle: handleTokenizerInfo },
  '/usage': { method: 'GET', signed: true, handle: getUsage },
  '/models': { method: 'GET', signed: true, handle: listModels },
  '/activity': { method: 'GET', signed: true, handle: getActivity },
  '/health': { method: 'GET', signed: false, handle: getStatus },
};

/** Routes of the port for operators, which callers cannot reach. */
const METRICS_ROUTES: typeof ROUTES = {
  '/health': { method: 'GET', signed: false, handle: getHealth },
  '/metrics': { method: 'GET', signed: false, handle: getMetrics },
};

function listModels({ response }: ReceivedRequest, { service }: ServerContext): void {
  sendJson(response, 200, { capabilities: CAPABILITIES, models: service.health.models });
}

function getActivity({ response, receivedAt }: ReceivedRequest, { service, metrics }: ServerContext): void {
  const states = new Map(service.health.models.map(({ id, state }) => [id, state]));
  const bounds = [...metrics.recent.bounds];
  const models = metrics.loads().map(({ model, ...load }) => ({
    id: model,
    state: states.get(model) ?? 'unloaded',
    ...load,
    minutes: metrics.recent.of(model, receivedAt),
  }));
  sendJson(response, 200, { bounds, models } satisfies OriginActivity);
}

/** GET /usage?account=… or GET /usage?under=… */
function getUsage({ query, response }: ReceivedRequest, { usageAccounts }: ServerContext): void {
  const under = query.get('under');
  const usage = under === null ? usageAccounts.find(query.get('account') ?? '') : usageAccounts.under(under);
  sendJson(response, 200, usage);
}

/** Answers 200 only while requests are accepted, for load balancers. */
function getStatus({ response }: ReceivedRequest, { service }: ServerContext): void {
  const { status } = service.health;
  sendJson(response, status === 'ready' ? 200 : 503, { status });
}

/** Answers like `getStatus`, with models, their faults, and the numbers of running and waiting sequences. */
function getHealth({ response }: ReceivedRequest, { service }: ServerContext): void {
  const { health } = service;
  sendJson(response, health.status === 'ready' ? 200 : 503, health);
}

async function getMetrics({ response }: ReceivedRequest, { metrics }: ServerContext): Promise<void> {
  const text = await metrics.registry.metrics();
  response.writeHead(200, { 'content-type': metrics.registry.contentType });
  response.end(text);
}

const TIMEOUTS = {
  headersTimeout: 10_000,
  /** Covers the whole request with its body, but not the answer. */
  requestTimeout: 30_000,
  /** Interval at which the other two are checked. */
  connectionsCheckingInterval: 5000,
  /** Longer than the Worker keeps an idle connection, so that the Worker closes it. */
  keepAliveTimeout: 120_000,
};

/** Creates the origin's HTTP server, which does not listen yet. */
export const createOriginServer = (context: ServerContext, timeouts = TIMEOUTS): Server =>
  createHttpServer(ROUTES, context, timeouts);

/** Creates the server of metrics and detailed health, which does not listen yet. */
export const createMetricsServer = (context: ServerContext): Server =>
  createHttpServer(METRICS_ROUTES, context, TIMEOUTS);

function createHttpServer(routes: typeof ROUTES, context: ServerContext, timeouts: typeof TIMEOUTS): Server {
  const server = createServer(timeouts);
  server.on('request', (request, response) => void respond(routes, request, response, context));
  server.on('clientError', refuseUnreadable);
  server.on('connect', (_, socket) =>
    endWith(new ApiError('invalid_value', 'CONNECT is not supported.'), socket),
  );
  return server;
}

async function respond(
  routes: typeof ROUTES,
  request: IncomingMessage,
  response: ServerResponse,
  context: ServerContext,
): Promise<void> {
  const receivedAt = context.now();
  const url = URL.parse(request.url ?? '', 'http://origin');
  const path = url?.pathname ?? '';
  const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
  response.once('close', () => {
    const status = response.headersSent ? String(response.statusCode) : 'none';
    context.metrics.requests.inc({ route: route ? path : 'unknown', status });
  });
  if (context.service.isLeaving) response.setHeader('connection', 'close');
  response.on('error', () => undefined); // the client has disconnected; 'close' follows
  try {
    if (!route) throw new ApiError('unknown_url', `Invalid URL (${request.method} ${path})`);
    if (request.method !== route.method) {
      throw new ApiError('method_not_supported', `Not allowed to ${request.method} on ${path}.`, {
        headers: { allow: route.method },
      });
    }
    const body = route.signed ? await signedBody(request, context) : '';
    const query = url?.searchParams ?? new URLSearchParams();
    await route.handle({ request, response, query, body, receivedAt }, context);
  } catch (error) {
    refuse(error, request, response, context);
  }
}

/** @throws ApiError 401, 413 */
async function signedBody(request: IncomingMessage, { authenticate }: ServerContext): Promise<string> {
  const signature = request.headers[SIGNATURE_HEADER];
  if (typeof signature !== 'string') throw notSigned();
  const { method = '', url: path = '' } = request;
  // Checked before the body is read, so that unsigned requests cost nothing.
  const keyId = request.headers[SECRET_ID_HEADER];
  const bodyHash = await authenticate(signature, keyId, { method, path });
  const body = await readBody(request);
  if (hash('sha256', body) !== bodyHash) throw notSigned();
  return body;
}

function refuse(
  thrown: unknown,
  request: IncomingMessage,
  response: ServerResponse,
  context: ServerContext,
): void {
  // The client disconnected before it had sent the whole request: there is nothing to report.
  if (response.destroyed && !request.complete) return;
  const error = toApiError(thrown);
  const { status, code, param } = error;
  if (error !== thrown && !response.destroyed)
    context.log.error({ ...bugTrace(thrown), url: request.url }, 'failed');
  else context.log.info({ url: request.url, status, code, param }, 'refused');
  if (response.headersSent) {
    response.destroy(); // without a terminal event the stream is an error for the Worker
    return;
  }
  for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
  sendJson(response, status, error.envelope());
}

/** Answers a request that Node's parser rejected. */
function refuseUnreadable(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const refusal =
    error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
      ? new ApiError('request_timeout', 'The request took too long to arrive.')
      : error.code === 'HPE_HEADER_OVERFLOW'
        ? new ApiError('headers_too_large', 'The request headers are too large.')
        : new ApiError('invalid_value', 'The request is not valid HTTP.');
  endWith(refusal, socket);
}

/** Writes an error answer without Node's response, which does not exist for such a request. */
function endWith(refusal: ApiError, socket: Duplex): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  socket.on('error', () => socket.destroy());
  const body = JSON.stringify(refusal.envelope());
  socket.end(
    `HTTP/1.1 ${refusal.status} \r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}

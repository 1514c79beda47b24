import { IttyRouter } from 'itty-router';
import { toApiError } from '../shared/errors.ts';
import { toHex } from '../shared/signing.ts';
import type { Answer, RequestContext } from './context.ts';
import { provisionalDialect } from './dialects/dialect.ts';
import { type Env, parseSettings, type Settings } from './env.ts';
import { reportBug } from './http/bug-report.ts';
import { preflight } from './http/cors.ts';
import { misconfigured } from './http/misconfigured.ts';
import { drain } from './http/request-body.ts';
import { traceparentOf } from './http/request-ids.ts';
import { dressed } from './http/response-headers.ts';
import { errorResponse, incomingRequestId } from './http/responses.ts';
import { EndingQueue } from './limits/settlement-queue.ts';
import { openApiDocument } from './openapi/document.ts';
import type { InnerProps } from './replay/objects/stream-tail.ts';
import { decoded, ROUTES, type RouteSpec, refuse } from './routes.ts';
import { KeyDirectory } from './tenants/key-directory.ts';
import { RequestTimers } from './timers/request-timers.ts';
import { Timings } from './timers/timings.ts';
import { type Catalogue, createCatalogue } from './upstreams/pool.ts';

/** What one isolate keeps between requests; plain data only, since I/O objects belong to the request that made them. */
interface Isolate {
  readonly settings: Settings;
  readonly catalogue: Catalogue;
  readonly keys: KeyDirectory;
  readonly endings: EndingQueue;
  readonly openApi: () => unknown;
}

const now = (): number => Date.now();

const randomHex = (count: number): string => toHex(crypto.getRandomValues(new Uint8Array(count)));

function createIsolate(env: Env): Isolate {
  const settings = parseSettings(env);
  return {
    settings,
    catalogue: createCatalogue(env, settings, now),
    keys: new KeyDirectory(now),
    endings: new EndingQueue((ms) => scheduler.wait(ms)),
    openApi: once(() => openApiDocument(ROUTES)),
  };
}

/** `make`, run at the first call only. */
function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** What a resumable stream gives its own request along; nothing with a caller's. */
const innerProps = ({ props }: ExecutionContext): Partial<InnerProps> =>
  (props as Partial<InnerProps> | undefined) ?? {};

function createContext(
  request: Request,
  env: Env,
  background: ExecutionContext,
  isolate: Isolate,
): RequestContext {
  const answer: Answer = { dialect: provisionalDialect(request), limits: {} };
  const { completion = randomHex(16), region = regionOf(request, isolate.settings) } = innerProps(background);
  return {
    requestId: incomingRequestId(request) ?? `req_${randomHex(16)}`,
    completionId: `cmpl-${completion}`,
    env,
    ...isolate,
    answer,
    caller: { principal: null, endUser: null },
    region,
    timings: new Timings(now),
    timers: new RequestTimers(now),
    traceparent: traceparentOf(request, randomHex),
    now,
    randomHex,
    waitUntil: (work) => background.waitUntil(work),
  };
}

/** A place without a name, such as a local server, is one region. */
function regionOf({ cf }: Request, { LIMIT_REGIONS: by }: Settings): string | null {
  if (by === 'off') return null;
  const name = (cf as Partial<IncomingRequestCfProperties> | undefined)?.[by];
  return name ?? 'local';
}

type Router = (request: Request, context: RequestContext) => Promise<Response>;

/** The routes as one function. @throws ApiError 404, 405, and what handlers throw */
function createRouter(routes: readonly RouteSpec[]): Router {
  const router = IttyRouter();
  for (const { method, path, handler } of routes) {
    const register = router[method.toLowerCase() as 'get' | 'post'];
    register(path, ({ params }, request: Request, context: RequestContext) =>
      handler(request, context, decoded(params?.rest ?? '')),
    );
  }
  return async (request, context) => {
    // HEAD is GET without its body, which the platform leaves out by itself.
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    const answer = await router.fetch({ method, url: request.url }, request, context);
    if (answer instanceof Response) return answer;
    const { pathname } = new URL(request.url);
    const matching = router.routes.filter(([, pattern]) => pattern.test(pathname)).map(([verb]) => verb);
    return refuse(request.method, pathname, [...new Set(matching)]);
  };
}

async function serve(route: Router, request: Request, context: RequestContext): Promise<Response> {
  try {
    const answer = preflight(request, context.settings) ?? (await route(request, context));
    return dressed(answer, request, context);
  } catch (thrown) {
    const error = toApiError(thrown);
    if (error !== thrown) reportBug(thrown, context);
    await drain(request, context.settings);
    return dressed(errorResponse(error, context), request, context);
  }
}

function createWorker(): ExportedHandler<Env> {
  const route = createRouter(ROUTES);
  let isolate: Isolate | null = null;
  return {
    async fetch(request, env, background) {
      try {
        isolate ??= createIsolate(env);
      } catch (thrown) {
        return misconfigured(thrown);
      }
      const answer = serve(route, request, createContext(request, env, background, isolate));
      // A client that leaves before the answer takes along whatever is not waited for: a lease that nobody ends, a
      // slot that is taken, an idempotency key that stays in use.
      background.waitUntil(answer);
      return answer;
    },
  };
}

export default createWorker();

export { RegionLimiter } from './limits/objects/region-limiter.ts';
export { TenantLimiter } from './limits/objects/tenant-limiter.ts';
export { IdempotentAnswer } from './replay/objects/idempotent-answer.ts';
export { StreamTail } from './replay/objects/stream-tail.ts';

import { toApiError } from '../shared/errors.ts';
import type { Answer, RequestContext } from './context.ts';
import { provisionalDialect } from './dialects/dialect.ts';
import { type Env, parseSettings, type Settings } from './env.ts';
import { errorResponse, finished, incomingRequestId } from './http.ts';
import { createRouter, ROUTES } from './routes.ts';
import { type Catalogue, createCatalogue } from './upstreams/pool.ts';

/** What one isolate keeps between requests; plain data only, since I/O objects belong to the request that made them. */
interface Isolate {
  readonly settings: Settings;
  readonly catalogue: Catalogue;
}

const now = (): number => Date.now();

function randomHex(count: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(count));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function createIsolate(env: Env): Isolate {
  const settings = parseSettings(env);
  return { settings, catalogue: createCatalogue(settings, now) };
}

function createContext(
  request: Request,
  env: Env,
  background: ExecutionContext,
  isolate: Isolate,
): RequestContext {
  const answer: Answer = { dialect: provisionalDialect(request), headers: new Headers() };
  return {
    requestId: incomingRequestId(request) ?? `req_${randomHex(16)}`,
    env,
    ...isolate,
    answer,
    now,
    randomHex,
    waitUntil: (work) => background.waitUntil(work),
  };
}

function createWorker(): ExportedHandler<Env> {
  const route = createRouter(ROUTES);
  let isolate: Isolate | null = null;
  return {
    async fetch(request, env, background) {
      isolate ??= createIsolate(env);
      const context = createContext(request, env, background, isolate);
      try {
        return finished(await route(request, context), context);
      } catch (thrown) {
        const error = toApiError(thrown);
        if (error !== thrown)
          console.error(JSON.stringify({ requestId: context.requestId, error: String(thrown) }));
        return finished(errorResponse(error, context), context);
      }
    },
  };
}

export default createWorker();

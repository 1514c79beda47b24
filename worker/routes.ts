import { IttyRouter } from 'itty-router/IttyRouter';
import { ApiError } from '../shared/errors.ts';
import { complete } from './completions.ts';
import type { RequestContext } from './context.ts';
import { health, listModels, showModel } from './models.ts';
import { detokenize, showTokenizer, tokenize } from './tokenize.ts';

export type Handler = (
  request: Request,
  context: RequestContext,
  argument: string,
) => Response | Promise<Response>;

interface RouteSpec {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** itty-router's pattern; `:rest+` also matches slashes and is handed to the handler, decoded. */
  readonly path: string;
  readonly handler: Handler;
}

export const ROUTES: readonly RouteSpec[] = [
  { method: 'POST', path: '/v1/completions', handler: complete },
  { method: 'POST', path: '/api/v1/completions', handler: complete },
  { method: 'GET', path: '/v1/models', handler: listModels },
  { method: 'GET', path: '/v1/models/:rest+', handler: showModel },
  { method: 'GET', path: '/health', handler: health },
  { method: 'POST', path: '/tokenize', handler: tokenize },
  { method: 'POST', path: '/detokenize', handler: detokenize },
  { method: 'GET', path: '/tokenizer_info', handler: showTokenizer },
];

/** A path component as it was before it was escaped; what is no escape stays as it is. */
function decoded(component: string): string {
  try {
    return decodeURIComponent(component);
  } catch {
    return component;
  }
}

/** 405 where the path is known under other methods, 404 where it is not known at all. */
function refuse(method: string, url: string, allowed: readonly string[]): never {
  const { pathname } = new URL(url);
  if (allowed.length === 0)
    throw new ApiError('unknown_url', `Invalid URL (${method} ${pathname.slice(0, 200)})`);
  const list = allowed.join(', ');
  const message = `Not allowed to ${method} on ${pathname.slice(0, 200)} (expected one of: ${list}).`;
  throw new ApiError('method_not_supported', message, { headers: { allow: list } });
}

export type Router = (request: Request, context: RequestContext) => Promise<Response>;

/** The routes as one function. @throws ApiError 404, 405, and what handlers throw */
export function createRouter(routes: readonly RouteSpec[]): Router {
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
    return refuse(request.method, request.url, [...new Set(matching)]);
  };
}

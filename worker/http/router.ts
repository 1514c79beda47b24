import { ApiError } from '@continuo/shared/errors.ts';
import { IttyRouter } from 'itty-router';
import { preflight } from './cors.ts';
import type { RequestContext } from './request-context.ts';

export type RouteHandler = (
  request: Request,
  context: RequestContext,
  argument: string,
) => Response | Promise<Response>;

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /**
   * Has at most one part in braces. The handler gets it decoded as its argument; `{id+}` also matches
   * slashes.
   */
  readonly path: string;
  readonly handler: RouteHandler;
}

export type Router = (request: Request, context: RequestContext) => Promise<Response>;

/**
 * Returns the path of an address, for less than a URL costs. Only one without anything to normalize equals a
 * route's.
 */
export const pathOf = ({ url }: Request): string => /^https?:\/\/[^/?#\\]+([^?#]*)/.exec(url)?.[1] ?? '';

/** Combines routes into one function. @throws ApiError 404 or 405 without a route, and what handlers throw */
export function createRouter(routes: readonly Route[]): Router {
  const router = IttyRouter();
  const fixed = routes.filter(({ path }) => !path.includes('{'));
  const byPath = new Map(fixed.map(({ method, path, handler }) => [`${method} ${path}`, handler]));
  for (const { method, path, handler } of routes) {
    const register = router[method.toLowerCase() as 'get' | 'post'];
    const pattern = path.replace(/\{\w+(\+?)\}/, ':rest$1');
    register(pattern, ({ params }, request: Request, context: RequestContext) =>
      handler(request, context, decoded(params?.rest ?? '')),
    );
  }
  return async (request, context) => {
    // The platform removes the body from responses to HEAD.
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    const handler = byPath.get(`${method} ${pathOf(request)}`);
    if (handler) return handler(request, context, '');
    const response =
      preflight(request, context.settings) ??
      (await router.fetch({ method, url: request.url }, request, context));
    if (response instanceof Response) return response;
    const { pathname } = new URL(request.url);
    const matching = router.routes.filter(([, pattern]) => pattern.test(pathname)).map(([verb]) => verb);
    const isServed = (path: string) => router.routes.some(([, pattern]) => pattern.test(path));
    throw noRoute(request.method, pathname, [...new Set(matching)], rightPath(pathname, isServed));
  };
}

/** Removes a trailing slash and percent-encoding; an invalid encoding stays unchanged. */
function decoded(component: string): string {
  const bare = component.endsWith('/') ? component.slice(0, -1) : component;
  try {
    return decodeURIComponent(bare);
  } catch {
    return bare;
  }
}

/** Returns the path that a wrong base URL was meant to give; null if there is none. */
function rightPath(path: string, isServed: (path: string) => boolean): string | null {
  const single = path.replace(/\/{2,}/g, '/');
  const candidates = [single, `/v1${single}`, single.replace(/^\/v1\/v1\//, '/v1/')];
  return candidates.find((candidate) => candidate !== path && isServed(candidate)) ?? null;
}

/** 405 if the path exists for other methods, otherwise 404. */
function noRoute(method: string, path: string, allowed: readonly string[], right: string | null): ApiError {
  const shown = path.slice(0, 200);
  if (allowed.length === 0) {
    const hint =
      right === null
        ? 'This server offers text completions: POST /v1/completions.'
        : `Use ${right.slice(0, 200)} instead.`;
    return new ApiError('unknown_url', `Invalid URL (${method} ${shown}). ${hint}`);
  }
  const list = allowed.join(', ');
  const message = `Not allowed to ${method} on ${shown} (expected one of: ${list}).`;
  return new ApiError('method_not_supported', message, { headers: { allow: list } });
}

import { IttyRouter } from 'itty-router';
import { ApiError } from '../../shared/errors.ts';
import type { RequestContext } from '../context.ts';

export type RouteHandler = (
  request: Request,
  context: RequestContext,
  argument: string,
) => Response | Promise<Response>;

export interface Route {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** itty-router pattern. The handler gets the decoded `:rest` as its argument; `:rest+` also matches slashes. */
  readonly path: string;
  readonly handler: RouteHandler;
}

type Router = (request: Request, context: RequestContext) => Promise<Response>;

/** Combines routes into one function. @throws ApiError 404 or 405 if no route matches, and what handlers throw */
export function createRouter(routes: readonly Route[]): Router {
  const router = IttyRouter();
  for (const { method, path, handler } of routes) {
    const register = router[method.toLowerCase() as 'get' | 'post'];
    register(path, ({ params }, request: Request, context: RequestContext) =>
      handler(request, context, decoded(params?.rest ?? '')),
    );
  }
  return async (request, context) => {
    // The platform removes the body from responses to HEAD.
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    const response = await router.fetch({ method, url: request.url }, request, context);
    if (response instanceof Response) return response;
    const { pathname } = new URL(request.url);
    const matching = router.routes.filter(([, pattern]) => pattern.test(pathname)).map(([verb]) => verb);
    throw noRoute(request.method, pathname, [...new Set(matching)]);
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

/** 405 if the path exists for other methods, otherwise 404. */
function noRoute(method: string, path: string, allowed: readonly string[]): ApiError {
  const shown = path.slice(0, 200);
  if (allowed.length === 0) {
    const message = `Invalid URL (${method} ${shown}). This server offers text completions: POST /v1/completions.`;
    return new ApiError('unknown_url', message);
  }
  const list = allowed.join(', ');
  const message = `Not allowed to ${method} on ${shown} (expected one of: ${list}).`;
  return new ApiError('method_not_supported', message, { headers: { allow: list } });
}

import type { RouteHandler } from './router.ts';

/**
 * Compresses the responses of a route in development: the runtime encodes a body as its `content-encoding`
 * says. Cloudflare's network compresses what deployed Workers send, by what the client accepts, so there the
 * response stays as it is.
 */
export const compressed =
  (handler: RouteHandler): RouteHandler =>
  async (request, context, argument) => {
    const response = await handler(request, context, argument);
    if (context.settings.ENVIRONMENT !== 'development' || response.body === null) return response;
    const result = new Response(response.body, response);
    result.headers.append('vary', 'accept-encoding');
    if (!/\bgzip\b(?!;q=0(?:$|[,;\s]))/.test(request.headers.get('accept-encoding') ?? '')) return result;
    result.headers.set('content-encoding', 'gzip');
    result.headers.delete('content-length');
    return result;
  };

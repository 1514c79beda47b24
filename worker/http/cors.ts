import type { Settings } from '../env.ts';
import { EVERY_ANSWER, LIMITS, REPLAYED, RETRYING } from './headers.ts';

/** Which browsers' pages may call: the variable CORS_ORIGINS. Nobody's by default, and never for the admin API. */

const EXPOSED = Object.keys({ ...EVERY_ANSWER, ...RETRYING, ...LIMITS, ...REPLAYED }).join(', ');

const METHODS = 'GET, POST, OPTIONS';
/** A day; browsers shorten it to what they accept. */
const PREFLIGHT_SECONDS = '86400';

/** The origin to allow: the page's own when it is listed, `*` when all are, null when it is not allowed. */
function allowedOrigin(request: Request, { CORS_ORIGINS }: Settings): string | null {
  const origin = request.headers.get('origin');
  if (origin === null || new URL(request.url).pathname.startsWith('/admin')) return null;
  if (CORS_ORIGINS.includes('*')) return '*';
  return CORS_ORIGINS.includes(origin) ? origin : null;
}

/** CORS headers of an answer. */
export function corsHeaders(request: Request, settings: Settings): Record<string, string> {
  if (settings.CORS_ORIGINS.length === 0) return {};
  const origin = allowedOrigin(request, settings);
  if (origin === null) return { vary: 'origin' };
  return { 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED, vary: 'origin' };
}

/** The answer to a browser that asks before it calls; null for every other request. */
export function preflight(request: Request, settings: Settings): Response | null {
  const asks = request.method === 'OPTIONS' && request.headers.has('access-control-request-method');
  if (!asks || allowedOrigin(request, settings) === null) return null;
  return new Response(null, {
    status: 204,
    headers: {
      'access-control-allow-methods': METHODS,
      // Clients send headers of their own (x-stainless-*); what they may mean is checked where they are read.
      'access-control-allow-headers': request.headers.get('access-control-request-headers') ?? '*',
      'access-control-max-age': PREFLIGHT_SECONDS,
    },
  });
}

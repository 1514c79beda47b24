import type { Settings } from '../env/settings.ts';
import {
  COMMON_HEADERS,
  COMPLETION_HEADERS,
  LIMIT_HEADERS,
  REPLAY_HEADERS,
  RETRY_HEADERS,
} from './headers.ts';

/** CORS for the page origins in CORS_ORIGINS. The default allows none, and the admin API never allows any. */

const EXPOSED = Object.keys({
  ...COMMON_HEADERS,
  ...RETRY_HEADERS,
  ...LIMIT_HEADERS,
  ...REPLAY_HEADERS,
  ...COMPLETION_HEADERS,
}).join(', ');

const METHODS = 'GET, POST, PUT, PATCH, DELETE, OPTIONS';
/** One day; browsers reduce it to their own maximum. */
const PREFLIGHT_SECONDS = '86400';

/** Returns the value of `access-control-allow-origin`; null if the page's origin is not allowed. */
function allowedOrigin(request: Request, { CORS_ORIGINS }: Settings): string | null {
  const origin = request.headers.get('origin');
  if (origin === null || new URL(request.url).pathname.startsWith('/admin')) return null;
  if (CORS_ORIGINS.includes('*')) return '*';
  return CORS_ORIGINS.includes(origin) ? origin : null;
}

/** Returns the CORS headers of a response, without `vary`. */
export function corsHeaders(request: Request, settings: Settings): Record<string, string> {
  const origin = allowedOrigin(request, settings);
  if (origin === null) return {};
  return { 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED };
}

/** Answers a CORS preflight request from an allowed origin; returns null for every other request. */
export function preflight(request: Request, settings: Settings): Response | null {
  const isPreflight = request.method === 'OPTIONS' && request.headers.has('access-control-request-method');
  if (!isPreflight || allowedOrigin(request, settings) === null) return null;
  return new Response(null, {
    status: 204,
    headers: {
      'access-control-allow-methods': METHODS,
      // Clients add headers such as x-stainless-*. The Worker ignores those it does not know.
      'access-control-allow-headers': request.headers.get('access-control-request-headers') ?? '*',
      'access-control-max-age': PREFLIGHT_SECONDS,
    },
  });
}

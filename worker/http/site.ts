import { ApiError } from '@continuo/shared/errors.ts';
import type { Catalogue } from '../upstreams/pool.ts';
import { jsonResponse } from './responses.ts';
import type { RouteHandler } from './router.ts';

/** Serves the page that `npm run build` makes. */

const LINKS = {
  completions: '/v1/completions',
  models: '/v1/models',
  documentation: '/docs',
  openapi: '/openapi.json',
  health: '/health',
} as const;

/** The page loads from this server only and sends nothing elsewhere; no script or style is inline. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "worker-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Of a thread, which has the policy of its own file: it compiles WebAssembly and fetches the model. */
const THREAD_POLICY = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "connect-src 'self'",
  "frame-ancestors 'none'",
].join('; ');

/** Of the service worker, which fetches the page's files. */
const SERVICE_WORKER_POLICY = "default-src 'none'; connect-src 'self'; frame-ancestors 'none'";

/** The model that comes with Continuo. */
const BUILT_IN = 'continuo-mini';

/** Names of files in /assets contain a hash of their content. */
const FOREVER = 'public, max-age=31536000, immutable';

/** GET /: the page for browsers, and links as JSON for all other clients. Needs no key and names no model. */
export const startPage: RouteHandler = async (request, { env }) => {
  const forBrowser = request.headers.get('accept')?.includes('text/html') ?? false;
  if (!forBrowser) return withHeaders(links(new URL(request.url)), { vary: 'accept' });
  const page = await env.ASSETS.fetch(request);
  return withHeaders(page, { vary: 'accept', 'content-security-policy': PAGE_POLICY });
};

function links({ origin }: URL): Response {
  return jsonResponse({
    service: 'Continuo',
    base_url: `${origin}/v1`,
    links: Object.fromEntries(Object.entries(LINKS).map(([name, path]) => [name, origin + path])),
  });
}

/** GET /docs and the addresses below it: one document, which reads its own address. */
export const docsPage: RouteHandler = async (request, { env }) => {
  const page = await env.ASSETS.fetch(new Request(new URL('/docs/', request.url), request));
  return withHeaders(page, { 'content-security-policy': PAGE_POLICY });
};

/** GET /assets/{name}: a file of the page. */
export const siteFile: RouteHandler = async (request, { env, catalogue }) => {
  if (isOfModel(request)) await requireModel(await catalogue, request.signal);
  const file = await env.ASSETS.fetch(request);
  if (file.status === 404) throw new ApiError('not_found', 'The page has no file of this name. Reload it.');
  return withHeaders(file, { 'cache-control': FOREVER, 'content-security-policy': THREAD_POLICY });
};

/** GET /service-worker.js: opens the page without a connection. Its address never changes. */
export const serviceWorker: RouteHandler = async (request, { env }) => {
  const file = await env.ASSETS.fetch(request);
  return withHeaders(file, { 'cache-control': 'no-cache', 'content-security-policy': SERVICE_WORKER_POLICY });
};

/** The build names the files of the built-in model so. */
const isOfModel = ({ url }: Request): boolean => new URL(url).pathname.startsWith(`/assets/${BUILT_IN}-`);

/** The page may run the built-in model where the operator serves it. @throws ApiError 404 */
async function requireModel(catalogue: Catalogue, signal: AbortSignal): Promise<void> {
  const models = await catalogue.models(signal);
  if (models.some(({ id, build }) => id === BUILT_IN || build?.source === BUILT_IN)) return;
  throw new ApiError('not_found', `This endpoint does not serve ${BUILT_IN}.`);
}

/** POST /page-key: exchanges the one-time code of the link that a local start prints for its key. */
export const pageKey: RouteHandler = async (request, { env }) => {
  const response = await env.PAGE_KEY?.fetch(request);
  if (!response?.ok) {
    const message = 'The link was used before, or its server has started again. Enter the key itself.';
    throw new ApiError('not_found', message);
  }
  return withHeaders(response, { 'cache-control': 'no-store' });
};

/** Returns a response with mutable headers. */
function withHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  const result = new Response(response.body, response);
  for (const [name, value] of Object.entries(headers)) result.headers.set(name, value);
  return result;
}

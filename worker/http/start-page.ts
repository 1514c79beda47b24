import { jsonResponse } from './responses.ts';
import type { RouteHandler } from './router.ts';

const LINKS = {
  completions: '/v1/completions',
  models: '/v1/models',
  documentation: '/openapi.json',
  health: '/health',
} as const;

/** GET /: a page for browsers, and links as JSON for all other clients. Needs no key and names no model. */
export const startPage: RouteHandler = (request) => {
  const { origin } = new URL(request.url);
  const forBrowser = request.headers.get('accept')?.includes('text/html') ?? false;
  const response = forBrowser
    ? new Response(page(origin), { headers: { 'content-type': 'text/html; charset=utf-8' } })
    : jsonResponse({
        service: 'Continuo',
        base_url: `${origin}/v1`,
        links: Object.fromEntries(Object.entries(LINKS).map(([name, path]) => [name, origin + path])),
      });
  response.headers.set('vary', 'accept');
  return response;
};

/** The host comes from the request, so it is escaped. */
const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

const page = (origin: string): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Continuo</title>
<main>
<h1>Continuo</h1>
<p>This server completes texts. Its base URL for OpenAI clients is <code>${escaped(origin)}/v1</code>.</p>
<pre>curl ${escaped(origin)}${LINKS.completions} \\
  -H 'Authorization: Bearer YOUR_KEY' \\
  -H 'Content-Type: application/json' \\
  -d '{"model":"default","prompt":"Once upon a time","max_tokens":30}'</pre>
<ul>
<li><a href="${LINKS.documentation}">API documentation (OpenAPI)</a></li>
<li><a href="${LINKS.models}">Models</a> (with an API key)</li>
<li><a href="${LINKS.health}">Health</a></li>
</ul>
</main>
</html>
`;

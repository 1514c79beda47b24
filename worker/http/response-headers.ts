import { corsHeaders } from './cors.ts';
import { REQUEST_ID_HEADER } from './headers.ts';
import type { RequestContext } from './request-context.ts';

/** Responses contain only data: browsers must not embed them or guess their type. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'cross-origin',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
};

/** Adds the headers that every response has. The response's headers must be mutable. */
export function addCommonHeaders({ headers }: Response, request: Request, context: RequestContext): void {
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) {
    if (!headers.has(name)) headers.set(name, value);
  }
  const decided = { ...context.answer.limits, ...corsHeaders(request, context.settings) };
  for (const [name, value] of Object.entries(decided)) headers.set(name, value);
  headers.set(REQUEST_ID_HEADER, context.requestId);
  headers.set('server-timing', context.timings.header());
}

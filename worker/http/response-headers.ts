import type { RequestContext } from '../context.ts';
import { corsHeaders } from './cors.ts';
import { logRequest } from './request-log.ts';
import { REQUEST_ID_HEADER } from './responses.ts';
import { SECURITY_HEADERS } from './security-headers.ts';

/** Puts on an answer what every answer bears, and writes its line in the log. The headers must be mutable. */
export function dressed(response: Response, request: Request, context: RequestContext): Response {
  const { headers } = response;
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) {
    if (!headers.has(name)) headers.set(name, value);
  }
  const decided = { ...context.answer.limits, ...corsHeaders(request, context.settings) };
  for (const [name, value] of Object.entries(decided)) headers.set(name, value);
  headers.set(REQUEST_ID_HEADER, context.requestId);
  headers.set('server-timing', context.timings.header());
  logRequest(request, response, context);
  return response;
}

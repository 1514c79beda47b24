import type { RequestContext } from './context.ts';
import { corsHeaders } from './cors.ts';
import { logRequest } from './request-log.ts';
import { SECURITY_HEADERS } from './security-headers.ts';

/** Puts on a finished answer what every answer bears, and writes its line in the log. The headers must be mutable. */
export function dressed(response: Response, request: Request, context: RequestContext): Response {
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) {
    if (!response.headers.has(name)) response.headers.set(name, value);
  }
  for (const [name, value] of Object.entries(corsHeaders(request, context.settings))) {
    response.headers.set(name, value);
  }
  response.headers.set('server-timing', context.timings.header());
  logRequest(request, response, context);
  return response;
}

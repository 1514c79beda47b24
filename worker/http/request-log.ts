import type { RequestContext } from '../context.ts';

/** One line per request. Says who, what and how long; never a key, a prompt or a text. */
export function logRequest(request: Request, response: Response, context: RequestContext): void {
  if (!context.settings.LOG_REQUESTS) return;
  const { requestId, traceparent, caller, timings } = context;
  const line = {
    event: 'request',
    requestId,
    traceId: traceparent.split('-')[1],
    method: request.method,
    // Without its query, which may hold anything.
    path: new URL(request.url).pathname,
    status: response.status,
    tenant: caller.principal?.tenant.id ?? null,
    key: caller.principal?.key.id ?? null,
    user: caller.endUser,
    ms: timings.elapsed,
  };
  console.log(JSON.stringify(line));
}

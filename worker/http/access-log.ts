import { bugTrace } from '@continuo/shared/error-details.ts';
import type { RequestContext } from './request-context.ts';
import { pathOf } from './router.ts';

/** Longest path in a data point, whose texts the platform bounds together. */
const MAX_PATH = 256;

/**
 * Counts a response in Analytics Engine, also a refusal, for which there is no usage record. Best effort.
 * @param code '' = success
 */
export function countResponse(
  request: Request,
  response: Response,
  context: RequestContext,
  code: string,
): void {
  const { principal } = context.caller;
  try {
    context.env.REQUESTS?.writeDataPoint({
      indexes: [principal?.tenant.id ?? ''],
      blobs: [
        context.requestId,
        principal?.key.id ?? '',
        request.method,
        pathOf(request).slice(0, MAX_PATH),
        String(response.status),
        code,
      ],
      doubles: [context.timings.elapsed],
    });
  } catch {
    // A response does not fail because it is not counted.
  }
}

/** Writes one access log line. It never contains a key, a prompt or generated text. */
export function logRequest(request: Request, response: Response, context: RequestContext): void {
  if (!context.settings.LOG_REQUESTS) return;
  const { requestId, traceparent, caller, timings } = context;
  const line = {
    event: 'request',
    requestId,
    traceId: traceparent.split('-')[1],
    method: request.method,
    // Without the query, which may contain secrets.
    path: pathOf(request),
    status: response.status,
    tenant: caller.principal?.tenant.id ?? null,
    key: caller.principal?.key.id ?? null,
    user: caller.endUser,
    ms: timings.elapsed,
  };
  console.log(JSON.stringify(line));
}

/** Logs which variable or binding of the deployment is invalid. */
export function logMisconfiguration(message: string): void {
  console.error(JSON.stringify({ event: 'misconfigured', message }));
}

/** Logs that a model server refused or failed a request. */
export function logUpstreamFailure(failure: object, { requestId }: Pick<RequestContext, 'requestId'>): void {
  console.error(JSON.stringify({ requestId, event: 'upstream_failed', ...failure }));
}

/** Logs the stack of an unexpected error, without its message. */
export function reportBug(thrown: unknown, { requestId }: Pick<RequestContext, 'requestId'>): void {
  console.error(JSON.stringify({ requestId, event: 'bug', ...bugTrace(thrown) }));
}

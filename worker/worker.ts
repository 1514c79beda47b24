import { errorMessage } from '@continuo/shared/error-details.ts';
import { ApiError, toApiError } from '@continuo/shared/errors.ts';
import { settleAll } from '@continuo/shared/retry.ts';
import { eraseAgain } from './admin/erasure.ts';
import { moveUsage } from './admin/move-usage.ts';
import type { Env } from './env/env.ts';
import { parseSettings } from './env/settings.ts';
import { countResponse, logMisconfiguration, logRequest, reportBug } from './http/access-log.ts';
import { drain, sizeOf } from './http/request-body.ts';
import type { RequestContext } from './http/request-context.ts';
import { addCommonHeaders, errorResponse, misconfiguredResponse } from './http/responses.ts';
import { createRouter, type Router } from './http/router.ts';
import { backoff, createContext, createIsolate, type Isolate, now } from './isolate.ts';
import { ROUTES } from './routes.ts';

/** Serves a request. Only this function turns what handlers throw into a response. */
async function serve(route: Router, request: Request, context: RequestContext): Promise<Response> {
  let response: Response;
  let code = '';
  try {
    response = await route(request, context).finally(() => context.heldBody.release());
  } catch (thrown) {
    const error = toApiError(thrown);
    code = error.code;
    if (error !== thrown) reportBug(thrown, context);
    if (error.status < 500) await paceRefusal(request, context);
    await drain(request, context.settings);
    response = errorResponse(error, context);
  }
  addCommonHeaders(response, request, context);
  countResponse(request, response, context, code);
  logRequest(request, response, context);
  return response;
}

/** Waits until the tenant may have another large body refused. */
async function paceRefusal(request: Request, context: RequestContext): Promise<void> {
  const tenantId = context.caller.principal?.tenant.id ?? '';
  await context.freeWorkTurn(tenantId, sizeOf(request, context.settings));
}

/** The platform builds the address of a request from its Host header. */
async function refuseHost(): Promise<never> {
  throw new ApiError('invalid_value', 'Invalid Host header: expected one host name, with a port if needed.', {
    param: 'host',
  });
}

/** Creates the Worker of one isolate. */
export function createWorker(): ExportedHandler<Env> {
  const route = createRouter(ROUTES);
  let isolate: Isolate | null = null;
  return {
    async fetch(request, env, background) {
      try {
        isolate ??= createIsolate(env);
      } catch (thrown) {
        logMisconfiguration(errorMessage(thrown));
        return misconfiguredResponse();
      }
      const context = createContext(request, env, background, isolate);
      const response = URL.canParse(request.url)
        ? serve(route, request, context)
        : serve(refuseHost, new Request('http://invalid/', { headers: request.headers }), context);
      // If the client disconnects early, the platform cancels everything that waitUntil does not hold. The
      // reservation, its slot and the idempotency key would then stay in use.
      background.waitUntil(response);
      return response;
    },
    async scheduled(_, env) {
      const settings = parseSettings(env);
      // A store that fails for one task must not delay the others.
      await settleAll([eraseAgain({ env, settings, backoff, now }), moveUsage(env)]);
    },
  };
}

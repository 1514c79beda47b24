import { IsolateLimiters } from '@continuo/limits/isolate-limiter.ts';
import { RecentBlocks } from '@continuo/limits/recent-blocks.ts';
import { requestName } from '@continuo/limits/usage/reservation-id.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';
import { ApiError, toApiError } from '@continuo/shared/errors.ts';
import { type Backoff, settleAll } from '@continuo/shared/retry.ts';
import { toHex } from '@continuo/shared/signing.ts';
import { eraseAgain } from './admin/erasure.ts';
import { moveUsage } from './admin/move-usage.ts';
import { currentPrincipal } from './auth/auth.ts';
import { provisionalDialect } from './dialects/dialect.ts';
import type { Env } from './env/env.ts';
import type { InnerRequestProps } from './env/replay-protocol.ts';
import { parseSettings } from './env/settings.ts';
import { countResponse, logMisconfiguration, logRequest, reportBug } from './http/access-log.ts';
import { bodyBudget } from './http/body-budget.ts';
import { preflight } from './http/cors.ts';
import { freeWorkPace } from './http/free-work-pace.ts';
import { drain, sizeOf } from './http/request-body.ts';
import type { Reply, RequestContext } from './http/request-context.ts';
import { incomingRequestId, traceparentOf } from './http/request-context.ts';
import { addCommonHeaders, errorResponse, misconfiguredResponse } from './http/responses.ts';
import { createRouter } from './http/router.ts';
import { PriceList } from './prices/price-list.ts';
import { ROUTES } from './routes.ts';
import { KeyDirectory } from './tenants/key-directory.ts';
import { RequestTimers } from './timers/request-timers.ts';
import { Timings } from './timers/timings.ts';
import { UpstreamDirectory } from './upstreams/upstream-directory.ts';

const now = (): number => Date.now();

const POOL_BYTES = 2_048;

/** Returns a source of random hex. It draws many bytes at once: a draw takes longer than a slice. */
function hexSource(): (count: number) => string {
  let pool = '';
  let used = 0;
  return (count) => {
    if (used + 2 * count > pool.length) {
      pool = toHex(crypto.getRandomValues(new Uint8Array(Math.max(count, POOL_BYTES))));
      used = 0;
    }
    used += 2 * count;
    return pool.slice(used - 2 * count, used);
  };
}

const backoff: Backoff = { random: Math.random, pause: (ms) => scheduler.wait(ms) };

/** The state that one isolate keeps between requests. No I/O objects: those belong to a request. */
function createIsolate(env: Env) {
  const settings = parseSettings(env);
  const randomHex = hexSource();
  return {
    settings,
    randomHex,
    upstreams: new UpstreamDirectory(env, settings, now),
    keys: new KeyDirectory(now, {
      secret: settings.KEY_ID_SECRET ?? null,
      acceptUnchecked: settings.UNCHECKED_KEYS === 'accepted',
    }),
    prices: new PriceList(now),
    limiters: new IsolateLimiters(randomHex),
    recentBlocks: new RecentBlocks(now),
    backoff,
    // A single body of the largest size must fit.
    newBody: bodyBudget(Math.max(settings.MAX_HELD_BODY_BYTES, settings.MAX_BODY_BYTES)),
    freeWorkTurn: freeWorkPace(now, backoff.pause),
  };
}

type Isolate = ReturnType<typeof createIsolate>;

/** Properties that objects add to the requests they send to their own Worker; empty for callers' requests. */
const innerProps = ({ props }: ExecutionContext): InnerRequestProps =>
  (props as InnerRequestProps | undefined) ?? {};

/** The response to a line of a batch begins when its status is known. */
const NEVER_MS = 2 ** 31 - 1;

function createContext(
  request: Request,
  env: Env,
  background: ExecutionContext,
  isolate: Isolate,
): RequestContext {
  const reply: Reply = {
    dialect: provisionalDialect(request),
    limits: {},
    ignoredKeywords: null,
    ignoredFields: [],
  };
  const { randomHex } = isolate;
  const { completion = randomHex(16), batchKey = null } = innerProps(background);
  const context: RequestContext = {
    // A spread after other fields, or a second one, would copy one field at a time.
    ...isolate,
    settings: batchKey === null ? isolate.settings : { ...isolate.settings, EARLY_ANSWER_MS: NEVER_MS },
    requestId: incomingRequestId(request) ?? requestName(now(), randomHex(10)),
    completionId: `cmpl-${completion}`,
    env,
    // Begins early, so that a read of the list does not delay the request.
    catalogue: isolate.upstreams.catalogue(env.DB, (work) => background.waitUntil(work)),
    batchKey,
    reply,
    caller: { principal: null, endUser: null },
    heldBody: isolate.newBody(),
    timings: new Timings(now),
    timers: new RequestTimers(now),
    traceparent: traceparentOf(request, randomHex),
    now,
    currentPrincipal: (caller) => currentPrincipal(caller, context),
    waitUntil: (work) => background.waitUntil(work),
  };
  return context;
}

function finish(response: Response, request: Request, context: RequestContext, code = ''): Response {
  addCommonHeaders(response, request, context);
  countResponse(request, response, context, code);
  logRequest(request, response, context);
  return response;
}

async function serve(
  route: ReturnType<typeof createRouter>,
  request: Request,
  context: RequestContext,
): Promise<Response> {
  try {
    const response = preflight(request, context.settings) ?? (await route(request, context));
    return finish(response, request, context);
  } catch (thrown) {
    const error = toApiError(thrown);
    if (error !== thrown) reportBug(thrown, context);
    if (error.status < 500) await paceRefusal(request, context);
    await drain(request, context.settings);
    return finish(errorResponse(error, context), request, context, error.code);
  } finally {
    context.heldBody.release();
  }
}

/** Waits until the tenant may have another large body refused. */
async function paceRefusal(request: Request, context: RequestContext): Promise<void> {
  context.heldBody.release();
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

import { ApiError } from '../shared/errors.ts';
import { sha256Hex } from '../shared/signing.ts';
import type { Tenant } from '../shared/tenant.ts';
import { authenticate } from './auth/auth.ts';
import type { RequestContext } from './context.ts';
import type { CompletionCall } from './dialects/completion-call.ts';
import { chooseDialect, type Dialect } from './dialects/dialect.ts';
import { parseCompletion } from './dialects/request.ts';
import { startGeneration } from './generation/generation-start.ts';
import { answerPlain } from './generation/plain-answer.ts';
import { answerStream } from './generation/relay.ts';
import { checkCapabilities, DEFAULT_NAME, resolveModel } from './generation/resolve-model.ts';
import { IDEMPOTENCY_HEADER, RESUMABLE_HEADER } from './http/headers.ts';
import { readJsonObject } from './http/request-body.ts';
import { boundsOf, costOf } from './limits/request-cost.ts';
import { admit } from './limits/reservation.ts';

/** POST /v1/completions: authenticate → parse → admit → generate → relay. */
export async function complete(request: Request, context: RequestContext): Promise<Response> {
  const principal = await authenticate(request, context, 'completions');
  context.answer.dialect = chooseDialect(request, principal.tenant);
  const body = withModel(await readJsonObject(request, context), context.answer.dialect);
  const model = await resolveModel(body.model, principal, context, request.signal);
  const bounds = boundsOf(principal, context.settings);
  const call = parseCompletion(body, context.answer.dialect, bounds, model.defaults);
  context.caller.endUser = await endUserHash(call.endUser, principal.tenant);
  refuseKeyForStream(request, call);
  checkCapabilities(call, model);
  const reservation = await admit(principal, costOf(call, model), context);
  try {
    const starting = startGeneration({ request, context, principal, model, call, reservation });
    return await (call.answer.stream ? answerStream(starting, context) : answerPlain(starting, context));
  } catch (thrown) {
    throw finalAfterTimeLimit(thrown, context);
  }
}

type JsonBody = Awaited<ReturnType<typeof readJsonObject>>;

/** Adds the default model if the dialect allows requests without one. */
const withModel = (body: JsonBody, { modelOptional }: Dialect): JsonBody =>
  modelOptional && (body.model ?? null) === null ? { ...body, model: DEFAULT_NAME } : body;

/** A request that used its whole time limit would use it again, so clients must not repeat it. */
function finalAfterTimeLimit(thrown: unknown, { settings, timings }: RequestContext): unknown {
  if (!(thrown instanceof ApiError) || thrown.code !== 'upstream_timeout') return thrown;
  if (timings.elapsed < settings.REQUEST_TIMEOUT_MS) return thrown;
  const headers = { ...thrown.headers, 'x-should-retry': 'false' };
  return new ApiError(thrown.code, thrown.message, { param: thrown.param, headers });
}

/** A stream is not stored, so a repeated request would run again. */
function refuseKeyForStream(request: Request, { answer }: CompletionCall): void {
  if (!answer.stream || !request.headers.has(IDEMPOTENCY_HEADER)) return;
  const message = `Invalid header '${IDEMPOTENCY_HEADER}': it cannot be used with 'stream'. Remove it, or send '${RESUMABLE_HEADER}: true' instead to continue a broken stream.`;
  throw new ApiError('conflicting_parameters', message, { param: IDEMPOTENCY_HEADER });
}

/** Hashes the end user's name per tenant, so that logs can trace abuse without revealing the name. */
async function endUserHash(endUser: string | null, tenant: Tenant): Promise<string | null> {
  return endUser === null ? null : (await sha256Hex(`${tenant.id}\n${endUser}`)).slice(0, 16);
}

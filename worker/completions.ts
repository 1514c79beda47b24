import { admit } from './admission.ts';
import { authenticate } from './auth.ts';
import { readJsonObject } from './body.ts';
import type { RequestContext } from './context.ts';
import { chooseDialect } from './dialects/dialect.ts';
import { parseCompletion } from './dialects/request.ts';
import { pseudonymOf } from './end-user.ts';
import { startGeneration } from './generation-start.ts';
import { answerPlain, answerStream } from './relay.ts';
import { boundsOf, costOf } from './request-bounds.ts';
import { checkCapabilities, resolveModel } from './served-model.ts';

/** POST /v1/completions: authenticate → parse → admit → generate → relay. */
export async function complete(request: Request, context: RequestContext): Promise<Response> {
  const principal = await authenticate(request, context, 'completions');
  context.answer.dialect = chooseDialect(request, principal.tenant);
  const body = await readJsonObject(request, context);
  const model = await resolveModel(body.model, principal, context, request.signal);
  const bounds = boundsOf(principal, context.settings);
  const call = parseCompletion(body, context.answer.dialect, bounds, model.defaults);
  context.caller.endUser = await pseudonymOf(call.endUser, principal.tenant);
  checkCapabilities(call, model);
  const lease = await admit(principal, costOf(call, model), context);
  const started = await startGeneration({ request, context, principal, model, call, lease });
  return call.answer.stream ? answerStream(started, context) : answerPlain(started);
}

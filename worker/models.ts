import type { OriginModel } from '../shared/generation.ts';
import { authenticate } from './auth.ts';
import type { RequestContext } from './context.ts';
import { chooseDialect } from './dialects/dialect.ts';
import { jsonResponse } from './http.ts';
import { mayUse, modelNotFound } from './served-model.ts';

const modelObject = ({ id, created, contextLength }: OriginModel) => ({
  id,
  object: 'model',
  created,
  owned_by: 'continuo',
  max_model_len: contextLength,
});

async function visibleModels(request: Request, context: RequestContext): Promise<readonly OriginModel[]> {
  const principal = await authenticate(request, context, 'models');
  context.answer.dialect = chooseDialect(request, principal.tenant);
  const models = await context.catalogue.models(request.signal);
  return models.filter((model) => mayUse(principal, model));
}

/** GET /v1/models: those the key may use. */
export async function listModels(request: Request, context: RequestContext): Promise<Response> {
  const models = await visibleModels(request, context);
  return jsonResponse({ object: 'list', data: models.map(modelObject) });
}

/** GET /v1/models/{id}; the id may contain slashes. */
export async function showModel(request: Request, context: RequestContext, id: string): Promise<Response> {
  const model = (await visibleModels(request, context)).find((candidate) => candidate.id === id);
  if (model === undefined) throw modelNotFound(id);
  return jsonResponse(modelObject(model));
}

/** GET /health: the Worker itself is up; says nothing of the upstreams, which are nobody's business outside. */
export function health(): Response {
  return jsonResponse({ status: 'ok' });
}

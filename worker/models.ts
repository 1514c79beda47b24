import type { OriginModel } from '@continuo/shared/generation.ts';
import type { Principal } from '@continuo/shared/tenant.ts';
import { authenticate } from './auth/auth.ts';
import { chooseDialect, DIALECTS } from './dialects/dialect.ts';
import { parseNative } from './dialects/native-request.ts';
import { nativeSettings } from './generation/format/native-settings.ts';
import { listedPrice } from './generation/model-price.ts';
import { DEFAULT_NAME, named, resolveModel, usableModels } from './generation/resolve-model.ts';
import type { RequestContext } from './http/request-context.ts';
import { jsonResponse } from './http/responses.ts';

/** @param name the model's id or one of its aliases */
const modelObject = (
  { id, created, contextLength, state, build, tokenHealing, pricing }: PricedModel,
  name = id,
) => ({
  id: name,
  object: 'model',
  created,
  owned_by: 'continuo',
  root: id,
  max_model_len: contextLength,
  state,
  ...(tokenHealing && { token_healing: true }),
  ...build,
  ...(pricing && { pricing }),
});

/** A model with its price as it is shown; null = none. */
type PricedModel = OriginModel & { readonly pricing: Awaited<ReturnType<typeof listedPrice>> };

const priced = async (model: OriginModel, context: RequestContext): Promise<PricedModel> => ({
  ...model,
  pricing: await listedPrice(model, context),
});

/**
 * Lists each model under its id, its aliases and, if it is the default model, under `default`. Skips aliases that another
 * model already uses.
 */
function modelObjects(models: readonly PricedModel[], defaultModel: OriginModel | undefined) {
  const taken = new Set(models.map(({ id }) => id));
  return models.flatMap((model) => {
    const names = model.id === defaultModel?.id ? [...model.aliases, DEFAULT_NAME] : model.aliases;
    const free = [...new Set(names)].filter((alias) => !taken.has(alias));
    for (const alias of free) taken.add(alias);
    return [modelObject(model), ...free.map((alias) => modelObject(model, alias))];
  });
}

async function identify(request: Request, context: RequestContext): Promise<Principal> {
  const principal = await authenticate(request, context, 'models');
  context.answer.dialect = chooseDialect(request, principal.tenant);
  return principal;
}

/** GET /v1/models: the models that the key may use. */
export async function listModels(request: Request, context: RequestContext): Promise<Response> {
  const principal = await identify(request, context);
  const models = await context.catalogue.listed(request.signal);
  const visible = usableModels(principal, models);
  const shown = await Promise.all(visible.map((model) => priced(model, context)));
  return jsonResponse({ object: 'list', data: modelObjects(shown, named(DEFAULT_NAME, visible)) });
}

/** GET /v1/models/{id}: accepts every name that a completion accepts. The name may contain slashes. */
export async function showModel(request: Request, context: RequestContext, name: string): Promise<Response> {
  const principal = await identify(request, context);
  const model = await resolveModel(name, principal, context, request.signal);
  const listed = await context.catalogue.listed(request.signal);
  const current = listed.find(({ id }) => id === model.id) ?? model;
  return jsonResponse(modelObject(await priced(current, context), name));
}

/** The bounds of a request do not change the defaults. */
const NO_BOUNDS = { maxTokens: null, sequences: 1, logprobBytes: 1 };

/** GET /props?model=…: the properties of a model as llama.cpp's server reports them. Editors read the context length. */
export async function showProps(request: Request, context: RequestContext): Promise<Response> {
  const principal = await authenticate(request, context, 'models');
  context.answer.dialect = DIALECTS.llamacpp;
  const name = new URL(request.url).searchParams.get('model') || DEFAULT_NAME;
  const model = await resolveModel(name, principal, context, request.signal);
  const { call } = parseNative({ model: name, prompt: '' }, NO_BOUNDS, model.defaults);
  const params = nativeSettings(call, model);
  return jsonResponse({
    default_generation_settings: { n_ctx: model.contextLength, params },
    model_alias: name,
    model_path: model.id,
    modalities: { vision: model.imageTokens !== undefined, audio: false },
    chat_template: '',
    build_info: 'continuo',
  });
}

/** GET /health: reports that the Worker runs. It does not reveal the state of the upstreams. */
export function health(): Response {
  return jsonResponse({ status: 'ok' });
}

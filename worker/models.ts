import { publicModel, publicModelList } from '@continuo/shared/completion-response.ts';
import { propsResponse } from '@continuo/shared/native-response.ts';
import type { OriginModel } from '@continuo/shared/origin-model.ts';
import * as z from 'zod';
import { chooseDialect, DIALECTS } from './dialects/dialect.ts';
import { parseNative } from './dialects/native-request.ts';
import { nativeSettings } from './generation/format/native-settings.ts';
import { listedPrice } from './generation/model-price.ts';
import { DEFAULT_NAME, named, resolveModel, usableModels } from './generation/resolve-model.ts';
import type { RequestContext } from './http/request-context.ts';
import { type Operation, type OperationInput, operation } from './operations/operation.ts';
import { MODELS, ONE_MODEL } from './operations/operation-errors.ts';

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
 * Lists each model under its id, its aliases and, if it is the default model, under `default`. Skips aliases
 * that another model already uses.
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

async function listModels({ request, principal }: OperationInput, context: RequestContext) {
  context.reply.dialect = chooseDialect(request, principal.tenant);
  const models = await (await context.catalogue).listed(request.signal);
  const visible = usableModels(principal, models);
  const shown = await Promise.all(visible.map((model) => priced(model, context)));
  return { object: 'list', data: modelObjects(shown, named(DEFAULT_NAME, visible)) };
}

/** Accepts every name that a completion accepts. */
async function showModel({ request, id: name, principal }: OperationInput, context: RequestContext) {
  context.reply.dialect = chooseDialect(request, principal.tenant);
  const model = await resolveModel(name, principal, context, request.signal);
  const listed = await (await context.catalogue).listed(request.signal);
  const current = listed.find(({ id }) => id === model.id) ?? model;
  return modelObject(await priced(current, context), name);
}

/** The bounds of a request do not change the defaults. */
const NO_BOUNDS = { maxTokens: null, sequences: 1, logprobBytes: 1 };

/** The query of an operation on one model. */
export const modelQuery = z.object({
  model: z.string().optional().describe('Model id. If absent, the only served model.'),
});

/** Editors read the context length. */
async function showProps(
  { request, query, principal }: OperationInput<undefined, z.infer<typeof modelQuery>>,
  context: RequestContext,
) {
  context.reply.dialect = DIALECTS.llamacpp;
  const name = query.model || DEFAULT_NAME;
  const model = await resolveModel(name, principal, context, request.signal);
  const { parsed } = parseNative({ model: name, prompt: '' }, NO_BOUNDS, model.defaults);
  const params = nativeSettings(parsed, model);
  return {
    default_generation_settings: { n_ctx: model.contextLength, params },
    model_alias: name,
    model_path: model.id,
    modalities: { vision: model.imageTokens !== undefined, audio: false },
    chat_template: '',
    build_info: 'continuo',
  };
}

export const MODEL_OPERATIONS: readonly Operation[] = [
  operation('GET', '/props', {
    id: 'showProps',
    summary: "Describe the properties of a model as llama.cpp's server does.",
    scope: 'models',
    query: modelQuery,
    response: propsResponse,
    errors: ONE_MODEL,
    run: showProps,
  }),
  operation('GET', '/v1/models', {
    id: 'listModels',
    summary: 'List the models that the key may use.',
    scope: 'models',
    response: publicModelList,
    errors: MODELS,
    run: listModels,
  }),
  operation('GET', '/v1/models/{id+}', {
    id: 'retrieveModel',
    summary: 'Describe one model. Its id may contain slashes.',
    scope: 'models',
    response: publicModel,
    errors: ONE_MODEL,
    run: showModel,
  }),
];

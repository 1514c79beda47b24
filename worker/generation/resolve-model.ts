import {
  IMAGE_MARK,
  imageBase64,
  invalidImage,
  wrongImageCount,
} from '@continuo/shared/completion-prompt.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import type { OriginModel } from '@continuo/shared/origin-model.ts';
import type { Principal } from '@continuo/shared/tenant.ts';
import { describeValue } from '../dialects/parse-request.ts';
import type { ParsedCompletion } from '../dialects/parsed-completion.ts';
import { missingParameter } from '../dialects/request-errors.ts';
import type { RequestContext } from '../http/request-context.ts';
import type { Catalogue } from '../upstreams/pool.ts';

/** Names the model if the key may use only one. */
export const DEFAULT_NAME = 'default';

type Models = readonly OriginModel[];

const onlyOf = (models: Models): OriginModel | undefined => (models.length === 1 ? models[0] : undefined);

/** Returns the model of this name, among those that the key may use. Ids take precedence over aliases. */
export const named = (name: string, models: Models): OriginModel | undefined =>
  models.find(({ id }) => id === name) ??
  models.find(({ aliases }) => aliases.includes(name)) ??
  (name === DEFAULT_NAME ? onlyOf(models) : undefined);

/** Adds the tenant's names to the models. They take precedence over other aliases, not over ids. */
function withOwnNames(models: Models, aliases: Principal['tenant']['aliases']): Models {
  const names = Object.keys(aliases);
  if (names.length === 0) return models;
  return models.map((model) => {
    const mine = names.filter((name) => named(aliases[name]!, models) === model);
    return { ...model, aliases: [...mine, ...model.aliases.filter((alias) => !names.includes(alias))] };
  });
}

/** Returns the models that the key may use, with the tenant's names; a key names models as requests do. */
export function usableModels({ key, tenant }: Principal, served: Models): Models {
  const models = withOwnNames(served, tenant.aliases);
  if (key.models === null) return models;
  return models.filter((model) => key.models?.some((name) => named(name, models) === model));
}

const MAX_NAMED = 10;

/** Returns 404 with the models that the key may use, or the error of an upstream whose models are unknown. */
function modelNotFound(name: string, usable: Models, catalogue: Catalogue): ApiError {
  const missing = catalogue.missing();
  if (missing) return missing;
  const usual = named(DEFAULT_NAME, usable) === undefined ? [] : [DEFAULT_NAME];
  const ids = usable.map(({ id }) => id);
  const names = [...new Set([...ids, ...usable.flatMap(({ aliases }) => aliases), ...usual])];
  const shown = names.slice(0, MAX_NAMED).map((name) => `'${name}'`);
  const more = names.length > MAX_NAMED ? ' and more' : '';
  const available = shown.length === 0 ? '' : ` Available models: ${shown.join(', ')}${more}.`;
  const message = `The model '${name.slice(0, 100)}' does not exist or you do not have access to it.${available}`;
  return new ApiError('model_not_found', message, { param: 'model' });
}

const unavailable = ({ id }: OriginModel): ApiError =>
  new ApiError('model_unavailable', `The model '${id}' could not be loaded.`, {
    headers: { 'x-should-retry': 'false' },
  });

function modelName(value: unknown): string {
  if (value === undefined || value === null) throw missingParameter('model');
  if (typeof value === 'string') return value;
  const message = `Invalid type for 'model': expected a string, but got ${describeValue(value)} instead.`;
  throw new ApiError('invalid_type', message, { param: 'model' });
}

/**
 * Returns the model that a body names.
 * @throws ApiError 400 without a name; 404 for a model that is not served, or that the key may not use, as in
 *   the list of models; 503 for a model whose files no origin can read; 502 to 504 while the models are
 *   unknown
 */
export async function resolveModel(
  value: unknown,
  principal: Principal,
  context: RequestContext,
  signal: AbortSignal,
): Promise<OriginModel> {
  const name = modelName(value);
  const catalogue = await context.catalogue;
  const models = await catalogue.models(signal);
  const { anyModel } = context.reply.dialect;
  const usable = usableModels(principal, models);
  const model = named(name, usable) ?? (anyModel ? onlyOf(usable) : undefined);
  if (model === undefined) throw modelNotFound(name, usable, catalogue);
  if (model.state === 'unavailable') throw unavailable(model);
  return model;
}

/** A list of ids in a request is no longer than this many of the longest contexts. */
const MAX_CONTEXTS = 4;

/** Returns the most elements of a list, so that too many ids are refused before parsing. */
export async function longestList({ catalogue }: RequestContext, signal: AbortSignal): Promise<number> {
  const models = await (await catalogue).models(signal);
  return MAX_CONTEXTS * Math.max(...models.map(({ contextLength }) => contextLength));
}

/** Rejects what the origin would also reject. Token ids are left to the origin: one may be a mark. */
function checkImages(
  { prompts, images, plainText }: ParsedCompletion['generation'],
  model: OriginModel,
): void {
  if (images === undefined) return;
  if (model.imageTokens === undefined && model.state === 'loaded') {
    const message = `Unsupported parameter: the model '${model.id}' accepts text only, so 'images' is not available.`;
    throw new ApiError('unsupported_parameter', message, { param: 'images' });
  }
  const parts = prompts.flat();
  const text = parts.filter((part) => typeof part === 'string');
  const marks = plainText ? 0 : text.reduce((sum, part) => sum + part.split(IMAGE_MARK).length - 1, 0);
  if (text.length === parts.length && marks !== images.length) throw wrongImageCount(images.length, marks);
  for (const [index, image] of images.entries()) {
    const parsed = imageBase64(image);
    if ('fault' in parsed) throw invalidImage(index, parsed.fault);
  }
}

/** @throws ApiError 400 if the model lacks a feature of the request */
export function checkCapabilities(parsed: ParsedCompletion, model: OriginModel): void {
  if (parsed.generation.suffix !== null && !model.infill) {
    const message = `Unsupported parameter: the model '${model.id}' cannot fill in the middle, so 'suffix' is not available.`;
    const error = new ApiError('unsupported_parameter', message, { param: 'suffix' });
    throw parsed.rename?.(error) ?? error;
  }
  checkImages(parsed.generation, model);
}

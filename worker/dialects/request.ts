import { type CompletionRequest, completionRequest } from '@continuo/shared/completion.ts';
import { llamaCppRequest } from '@continuo/shared/completion-llamacpp.ts';
import { logprobRowsOf } from '@continuo/shared/completion-output.ts';
import { IMAGE_MARK, wrongImageCount } from '@continuo/shared/completion-prompt.ts';
import { ApiError, counted } from '@continuo/shared/errors.ts';
import { type GenerationDefaults, tokenLimitOf } from '@continuo/shared/sampling.ts';
import type { ObjectDefaults } from '@continuo/shared/tenant.ts';
import { either } from './aliases.ts';
import { constraintOf } from './constraints.ts';
import { checkTogether, type Resolved } from './cross-field.ts';
import { type Defaults, type Dialect, defaultsOf } from './dialect.ts';
import { refuseForeignConstraints } from './foreign-constraints.ts';
import { sparseParser } from './parse-request.ts';
import type { GenerationFields, ParsedCompletion, ResponseOptions } from './parsed-completion.ts';
import { passthroughFields } from './passthrough-fields.ts';
import { aboveAccountMaximum, unsupportedParameter } from './request-errors.ts';
import { logprobsOf, responseOptions } from './response-options.ts';
import { samplingOf } from './sampling-parameters.ts';

/** What the tenant, the key and the deployment allow for one request, and the tenant's defaults. */
export interface RequestBounds extends Partial<ObjectDefaults> {
  /** Maximum of max_tokens; null = no bound. */
  readonly maxTokens: number | null;
  /** Maximum of prompts · max(n, best_of). */
  readonly sequences: number;
  /** Maximum bytes of the rows of `logprobs_format`. */
  readonly logprobBytes: number;
}

/** Rejects known fields that have no implementation. */
function refuseUnsupported(request: CompletionRequest): void {
  if ((request.prompt_embeds ?? null) !== null) {
    throw unsupportedParameter('prompt_embeds', 'is not supported');
  }
  if ((request.lora ?? []).length > 0) {
    const advice = 'adapters are merged when a model is built, with continuo model build --adapter';
    throw unsupportedParameter('lora', `is supported only as an empty list; ${advice}`);
  }
  if (request.truncation_side === 'right') {
    throw unsupportedParameter('truncation_side', "is supported only as 'left'");
  }
  if (request.use_beam_search) throw unsupportedParameter('use_beam_search', 'is not supported');
}

const MAX_TOKENS_NAMES = ['max_tokens', 'max_completion_tokens', 'n_predict'] as const;

function maxTokensOf(request: CompletionRequest, defaults: Defaults, bound: number | null): number {
  const given = either(request, ...MAX_TOKENS_NAMES);
  const wanted = given ?? defaults.maxTokens;
  if (bound === null || (wanted >= 0 && wanted <= bound)) return wanted;
  if (given === undefined || given === -1) return bound;
  const name = MAX_TOKENS_NAMES.find((field) => request[field] === given);
  throw aboveAccountMaximum(name ?? 'max_tokens', bound, given);
}

const allowedSequences = (bound: number): string =>
  `This endpoint allows you at most ${counted(bound, 'sequence')} per request`;

/** @throws ApiError 400 if a field has more texts than one request may have sequences */
export function checkCount(field: string, count: number, bound: number): void {
  if (count <= bound) return;
  const message = `Invalid '${field}': array too long. ${allowedSequences(bound)}, but it has ${count} elements.`;
  throw new ApiError('array_above_max_length', message, { param: field });
}

function checkSequences(prompts: number, choices: number, param: string, bound: number): void {
  checkCount('prompt', prompts, bound);
  if (prompts * choices <= bound) return;
  const message = `Invalid '${param}': integer above maximum value. ${allowedSequences(bound)}, but ${counted(prompts, 'prompt')} with ${counted(choices, 'choice')} each would need ${prompts * choices}.`;
  throw new ApiError('integer_above_max_value', message, { param });
}

/** Returns the field that sets the number of sequences per prompt. */
function choicesField(request: CompletionRequest, n: number): string {
  if ((request.best_of ?? 0) > n) return 'best_of';
  return typeof request.n_cmpl === 'number' && typeof request.n !== 'number' ? 'n_cmpl' : 'n';
}

/** Returns the number of top logprobs per prompt token; null = none. `echo_last` needs the tokens' bytes. */
function promptTopLogprobsOf({ echo, echoLast, logprobs, promptLogprobs }: ResponseOptions): number | null {
  const wanted = [
    ...(echo && logprobs !== null ? [logprobs] : []),
    ...(promptLogprobs !== null ? [promptLogprobs] : []),
    ...(echo && echoLast !== null ? [0] : []),
  ];
  return wanted.length === 0 ? null : Math.max(...wanted);
}

/** Without logprobs of the prompt, the field has no effect. */
function promptLogprobStart(
  request: CompletionRequest,
  hasLogprobs: boolean,
): Pick<GenerationFields, 'promptLogprobStart'> {
  const start = either(request, 'prompt_logprob_start', 'logprob_start_len') ?? 0;
  return hasLogprobs && start !== 0 ? { promptLogprobStart: start } : {};
}

/**
 * Returns the images of all prompts in order. Each list of a list of lists belongs to one prompt.
 * @throws ApiError 400 if the lists are not those of the prompts
 */
function imagesOf({ images, prompt, parse_special }: CompletionRequest): Pick<GenerationFields, 'images'> {
  const given = images ?? [];
  const lists = given.filter((image) => typeof image !== 'string');
  if (lists.length > 0 && lists.length !== prompt.length) {
    const message = `Invalid 'images': expected a list for each prompt, but got ${counted(lists.length, 'list')} for ${counted(prompt.length, 'prompt')}.`;
    throw new ApiError('invalid_value', message, { param: 'images' });
  }
  for (const [index, list] of lists.entries()) {
    const parts = [prompt[index] ?? ''].flat();
    // A token id may stand for an image, which only the origin knows.
    if (parts.some((part) => typeof part === 'number')) continue;
    const marks = parse_special === false ? 0 : parts.join('').split(IMAGE_MARK).length - 1;
    if (list.length !== marks) throw wrongImageCount(list.length, marks, `images[${index}]`);
  }
  const flat = given.flat();
  return flat.length > 0 ? { images: flat } : {};
}

type TimeLimits = Pick<GenerationFields, 'maxPromptMs' | 'maxGenerationMs'>;

function timeLimits({ t_max_prompt_ms: prompt, t_max_predict_ms: predict }: CompletionRequest): TimeLimits {
  return {
    ...(prompt && prompt > 0 && { maxPromptMs: prompt }),
    ...(predict && predict > 0 && { maxGenerationMs: predict }),
  };
}

const listOf = (texts: string | string[]): string[] => (typeof texts === 'string' ? [texts] : texts);

/** The parts of an infill that OpenAI's request has no field for. */
type InfillParts = GenerationFields['infill'];

function generationOf(
  request: CompletionRequest,
  resolved: Resolved,
  response: ResponseOptions,
  dialect: Dialect,
  defaults: Defaults,
  infill: InfillParts,
  { logprobBytes }: RequestBounds,
): GenerationFields {
  const promptTopLogprobs = promptTopLogprobsOf(response);
  const stopRegex = request.stop_regex ?? [];
  return {
    prompts: request.prompt,
    ...imagesOf(request),
    suffix: resolved.suffix,
    ...(infill !== undefined && { infill }),
    choices: resolved.bestOf,
    maxTokens: resolved.maxTokens,
    minTokens: request.min_tokens ?? 0,
    stop: listOf(request.stop ?? []),
    ...(stopRegex.length > 0 && { stopRegex: listOf(stopRegex) }),
    ...((request.banned_phrases ?? []).length > 0 && { bannedPhrases: request.banned_phrases ?? [] }),
    ...(request.token_healing && { tokenHealing: true }),
    stopTokenIds: request.stop_token_ids ?? [],
    ...timeLimits(request),
    includeStop: either(request, 'include_stop_str_in_output', 'no_stop_trim') ?? dialect.includeStop,
    ignoreEos: request.ignore_eos ?? false,
    sampling: samplingOf(request, defaults),
    constraint: resolved.constraint?.constraint ?? null,
    topLogprobs: resolved.logprobs,
    ...(response.listedLogprobs && { logprobTokenIds: [...new Set(request.logprob_token_ids)] }),
    ...logprobRowsOf(request.logprobs_format, response.echo, logprobBytes),
    promptTopLogprobs,
    ...promptLogprobStart(request, promptTopLogprobs !== null),
    echo: response.echo || response.tokenIds || promptTopLogprobs !== null,
    scores: response.rank,
    tokenIds: response.tokenIds,
    skipSpecialTokens: request.skip_special_tokens ?? true,
    addSpecialTokens: request.add_special_tokens ?? true,
    ...(request.parse_special === false && { plainText: true }),
    contextOverflow: request.context_length_exceeded_behavior ?? dialect.contextOverflow,
    truncatePromptTokens: request.truncate_sequence ? -1 : (request.truncate_prompt_tokens ?? null),
    ...(request.service_tier === 'flex' && { flex: true }),
    cachePrompt: request.cache_prompt ?? true,
    cacheSalt: either(request, 'cache_salt', 'prompt_cache_isolation_key', 'prompt_cache_key') ?? '',
    stream: response.stream,
    ...(response.stream && response.tokensPerEvent !== null && { tokensPerEvent: response.tokensPerEvent }),
  };
}

const parseFields = sparseParser(completionRequest);
const parseLlamaCppFields = sparseParser(llamaCppRequest);

/**
 * Parses a request body: checks types and ranges, resolves aliases, then checks combinations of fields.
 * @throws ApiError 400 for the first invalid field
 */
export function parseCompletion(
  body: Readonly<Record<string, unknown>>,
  dialect: Dialect,
  bounds: RequestBounds,
  modelDefaults: GenerationDefaults = {},
  infill?: InfillParts,
): ParsedCompletion {
  const request = (dialect.llamaCppRanges ? parseLlamaCppFields : parseFields)(body);
  refuseUnsupported(request);
  refuseForeignConstraints(body);
  const defaults = defaultsOf(dialect, modelDefaults);
  const n = either(request, 'n', 'n_cmpl') ?? 1;
  const resolved: Resolved = {
    maxTokens: tokenLimitOf(maxTokensOf(request, defaults, bounds.maxTokens)),
    n,
    bestOf: request.best_of || n,
    echo: typeof request.echo_last === 'number' ? request.echo_last > 0 : (request.echo ?? false),
    logprobs: logprobsOf(request, dialect),
    suffix: infill === undefined ? request.suffix || null : (request.suffix ?? ''),
    constraint: constraintOf(request, dialect, bounds),
  };
  const response = responseOptions(request, resolved, dialect);
  const generation = generationOf(request, resolved, response, dialect, defaults, infill, bounds);
  checkTogether(request, resolved);
  checkSequences(request.prompt.length, resolved.bestOf, choicesField(request, n), bounds.sequences);
  return {
    response,
    generation,
    constraintField: resolved.constraint?.field ?? null,
    endUser: request.user ?? null,
    promptIsListed: Array.isArray(body.prompt) && body.prompt.length === 1 && Array.isArray(body.prompt[0]),
    extra: passthroughFields(body, request, resolved.constraint),
  };
}

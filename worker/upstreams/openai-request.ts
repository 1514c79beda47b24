import { constraintFields as CONSTRAINT_FIELDS } from '@continuo/shared/completion-constraints.ts';
import { ApiError, contextExceeded, requiredTokens } from '@continuo/shared/errors.ts';
import { exactNumber } from '@continuo/shared/exact-numbers.ts';
import { toSnakeCase, words } from '@continuo/shared/field-names.ts';
import type { GenerationRequest, WireConstraint, WirePrompt } from '@continuo/shared/generation.ts';
import { NEUTRAL_SAMPLING, type SamplingParameters } from '@continuo/shared/sampling.ts';
import { ALLOWED_FIELDS, type Flavor, PLAIN_STREAMS, WRAPPED_FIELDS } from './flavors.ts';
import { estimateTokens } from './token-estimate.ts';
import type { ShownPrompt, UpstreamContext } from './upstream.ts';

/** Writes a GenerationRequest as the body of POST /completions of an OpenAI-compatible server. */

type Fields = Record<string, unknown>;

interface BodyOptions extends Pick<UpstreamContext, 'extra' | 'tokensAsIds' | 'shown'> {
  /** The server's own name of the model. */
  readonly model: string;
  /** Tokens of prompt and completion together. */
  readonly contextLength: number;
  readonly flavor: Flavor;
  /** Sent as `priority` of flex requests; undefined = none is sent. */
  readonly flexPriority?: number | undefined;
  /** Sent as `cache_salt`; null = none is sent. */
  readonly cacheNamespace: string | null;
  /** Null = no field `user` is sent. */
  readonly user: string | null;
}

/** Settings beyond OpenAI's that have the same meaning everywhere. `penaltyScope` comes from the dialect and is not sent. */
const EXTENSIONS = (Object.keys(NEUTRAL_SAMPLING) as (keyof SamplingParameters)[])
  .filter((field) => !['seed', 'repetitionPenalty', 'logitBias', 'penaltyScope'].includes(field))
  .map((field) => [field, Object.keys(toSnakeCase({ [field]: 0 }))[0]!] as const);

/** OpenAI's own fields are always sent. */
const ALWAYS_SENT: ReadonlySet<string> = new Set([
  'temperature',
  'topP',
  'frequencyPenalty',
  'presencePenalty',
]);

const isNeutral = (value: unknown, neutral: unknown): boolean =>
  value === neutral || (typeof value === 'object' && JSON.stringify(value) === JSON.stringify(neutral));

/** Fields beyond OpenAI's have the names that vLLM and llama.cpp share. Their neutral values are not sent. */
function samplingFields(sampling: SamplingParameters): Fields {
  const { seed, repetitionPenalty, logitBias } = sampling;
  const fields: Fields = {};
  for (const [field, name] of EXTENSIONS) {
    const value = sampling[field];
    if (ALWAYS_SENT.has(field) || !isNeutral(value, NEUTRAL_SAMPLING[field])) fields[name] = value;
  }
  if (seed !== null) fields.seed = exactNumber(seed);
  if (repetitionPenalty !== NEUTRAL_SAMPLING.repetitionPenalty) {
    // The names of vLLM and llama.cpp; servers ignore the one that they do not know.
    fields.repetition_penalty = repetitionPenalty;
    fields.repeat_penalty = repetitionPenalty;
  }
  if (logitBias.length > 0) {
    fields.logit_bias = Object.fromEntries(logitBias.map(([id, bias]) => [id, bias ?? -100]));
  }
  return fields;
}

/** Uses the names of OpenAI, vLLM and llama.cpp, in addition to the client's own field. */
function constraintFields(constraint: WireConstraint | null, { flavor, extra }: BodyOptions): Fields {
  if (constraint === null) return {};
  // Another Continuo refuses two constraints. Only that of tools is not among the client's own fields.
  const isSent = Object.keys(extra).some((name) => Object.hasOwn(CONSTRAINT_FIELDS, name));
  if (flavor === 'continuo' && isSent) return {};
  // llama.cpp ignores `response_format` outside chat completions.
  const isLlamaCpp = flavor === 'llamacpp';
  switch (constraint.type) {
    case 'json_object':
      return isLlamaCpp ? { json_schema: { type: 'object' } } : { response_format: { type: 'json_object' } };
    case 'json_schema':
      if (isLlamaCpp) return { json_schema: constraint.value };
      return {
        response_format: { type: 'json_schema', json_schema: { name: 'output', schema: constraint.value } },
      };
    case 'gbnf':
      return { grammar: constraint.value, structured_outputs: { grammar: constraint.value } };
    case 'lark':
      return { structured_outputs: { grammar: constraint.value } };
    default:
      return { structured_outputs: { [constraint.type]: constraint.value } };
  }
}

export const unsupported = (param: string, what: string): ApiError =>
  new ApiError('unsupported_parameter', `Unsupported parameter: this model's server cannot ${what}.`, {
    param,
  });

/** True if the answer has the prompt with its logprobs before the completion, as the server echoes it. */
export const echoesLogprobs = ({ topLogprobs }: GenerationRequest, { echo }: ShownPrompt): boolean =>
  echo && topLogprobs !== null;

/** Rejects what a server cannot tell about a prompt. */
function checkPromptLogprobs(request: GenerationRequest, { shown }: BodyOptions): void {
  if (request.promptTopLogprobs === null) return;
  if (shown.echo && shown.echoLast !== null)
    throw unsupported('echo_last', 'show the last tokens of a prompt');
  if (request.promptLogprobStart !== undefined)
    throw unsupported('prompt_logprob_start', 'leave out logprobs of a prompt');
  if (!echoesLogprobs(request, shown)) return;
  if (shown.promptLogprobs !== null)
    throw unsupported(
      'prompt_logprobs',
      "score a prompt twice; send 'echo' with 'logprobs' in another request",
    );
  if (request.scores) throw unsupported('best_of', 'rank choices with the logprobs of the prompt');
}

/** Fields that only another Continuo has; a server that ignores them would answer another text. */
const ownFields = ({ stopRegex, tokenHealing, bannedPhrases, plainText }: GenerationRequest): Fields => ({
  ...(stopRegex && { stop_regex: stopRegex }),
  ...(tokenHealing && { token_healing: true }),
  ...(bannedPhrases && { banned_phrases: bannedPhrases }),
  ...(plainText && { parse_special: false }),
});

/** Rejects what needs the server's tokenizer. @throws ApiError 400 */
function checkSupported(request: GenerationRequest, options: BodyOptions): void {
  const { tokensAsIds, shown, flavor } = options;
  checkPromptLogprobs(request, options);
  if (request.addSpecialTokens === 'always') {
    throw unsupported('add_special_tokens', 'add special tokens always; use true or false');
  }
  for (const name of Object.keys(ownFields(request))) {
    if (flavor !== 'continuo') throw unsupported(name, `use '${name}'`);
  }
  if (request.sampling.logitBiasTexts) throw unsupported('logit_bias', 'bias texts; send token ids');
  if (request.logprobRows) throw unsupported('logprobs_format', 'return rows of logprobs');
  if (request.tokenIds) throw unsupported('return_token_ids', 'show token ids');
  if (tokensAsIds && request.topLogprobs !== null) {
    throw unsupported('return_tokens_as_token_ids', 'name tokens by their ids');
  }
  if (request.echo && request.truncatePromptTokens !== null) {
    throw unsupported('echo', 'show what is left of a prompt that is cut');
  }
  const isPlain = request.topLogprobs === null && request.prompts.length * request.choices === 1;
  if (request.stream && PLAIN_STREAMS.has(flavor) && !isPlain) {
    const [field, what] = request.topLogprobs === null ? ['n', 'choices'] : ['logprobs', 'logprobs'];
    throw unsupported(request.prompts.length > 1 ? 'prompt' : field!, `stream ${what}; send 'stream': false`);
  }
  if (
    request.echo &&
    !echoesLogprobs(request, shown) &&
    request.prompts.some((prompt) => typeof prompt !== 'string')
  ) {
    throw unsupported('echo', 'show a prompt given as token ids');
  }
}

/**
 * Rejects token ids that do not fit, because their number is exact. The server checks the length of texts.
 * @throws ApiError 400 context_length_exceeded
 */
function checkLength(
  { prompts, maxTokens, contextOverflow, truncatePromptTokens }: GenerationRequest,
  { contextLength }: BodyOptions,
): void {
  if (truncatePromptTokens !== null) return;
  for (const [index, ids] of prompts.entries()) {
    if (!Array.isArray(ids) || ids.some((part) => typeof part === 'string')) continue;
    const required = requiredTokens(maxTokens);
    const needed = contextOverflow === 'error' ? required : Math.min(1, required);
    const param = prompts.length === 1 ? 'prompt' : `prompt[${index}]`;
    if (ids.length + needed > contextLength)
      throw contextExceeded(contextLength, ids.length, maxTokens, param);
  }
}

/**
 * Returns the most tokens to generate. The number of prompt tokens is an estimate, so a server that checks the sum may
 * still reject a dense prompt.
 */
function maxTokensOf(
  { maxTokens, prompts, contextOverflow }: GenerationRequest,
  { contextLength }: BodyOptions,
): number {
  const room = Math.max(1, contextLength - Math.max(...prompts.map(estimateTokens)));
  if (maxTokens < 0) return room;
  return contextOverflow === 'truncate' ? Math.min(maxTokens, room) : maxTokens;
}

/** Fields that change no token, or only how many there are in time, so a server without them gets none. */
const DISPENSABLE: ReadonlySet<string> = new Set(
  words('stream_options cache_prompt cache_salt priority t_max_prompt_ms t_max_predict_ms'),
);

const CONSTRAINTS = ['structured_outputs', 'response_format', 'grammar', 'json_schema'];

/** Other names of one field: a server that takes one of them gets the request. */
const SYNONYMS: readonly (readonly string[])[] = [['repetition_penalty', 'repeat_penalty'], CONSTRAINTS];

/**
 * Leaves out the fields that the server's flavor does not allow.
 * @param needed fields that change what is generated
 * @throws ApiError 400 if a needed field is not allowed, under none of its names
 */
function withAllowedFields(body: Fields, needed: readonly string[], flavor: Flavor): Fields {
  const allowed = ALLOWED_FIELDS[flavor];
  if (allowed === null) return body;
  const wrapped = WRAPPED_FIELDS[flavor] ?? [];
  const isSent = (name: string) => (allowed.has(name) || wrapped.includes(name)) && Object.hasOwn(body, name);
  const missing = needed.find((name) => {
    const names = SYNONYMS.find((one) => one.includes(name)) ?? [name];
    return !DISPENSABLE.has(name) && !names.some(isSent);
  });
  if (missing !== undefined) {
    const [param, what] = CONSTRAINTS.includes(missing)
      ? [CONSTRAINTS[0]!, 'follow this constraint']
      : [missing, `use '${missing}'`];
    throw unsupported(param, what);
  }
  const entries = Object.entries(body);
  const inner = entries.filter(([name]) => wrapped.includes(name));
  const extra = inner.length === 0 ? {} : { extra_body: Object.fromEntries(inner) };
  return { ...Object.fromEntries(entries.filter(([name]) => allowed.has(name))), ...extra };
}

/**
 * Returns the prompts of a completion with a suffix: the other files of an infill, the prompt, and the start of the text
 * to generate. The server's own template marks no files, and nothing behind the middle marker.
 */
function promptsOf({ prompts, infill }: GenerationRequest): WirePrompt[] {
  if (infill === undefined) return prompts;
  const files = infill.files.map(({ text }) => (text.endsWith('\n') ? text : `${text}\n`)).join('');
  return prompts.map((prompt) =>
    typeof prompt === 'string' ? files + prompt + infill.middle : [files, ...prompt, infill.middle],
  );
}

/**
 * @param options its extra fields are sent as they are, unless the request sets the same field
 * @throws ApiError 400 for what such a server cannot do
 */
export function openAiBody(generation: GenerationRequest, options: BodyOptions): Fields {
  const request = { ...generation, prompts: promptsOf(generation) };
  checkSupported(request, options);
  checkLength(request, options);
  const [only] = request.prompts;
  const logprobs = request.topLogprobs ?? (request.scores ? 0 : null);
  const sampling = samplingFields(request.sampling);
  const asked = {
    ...constraintFields(request.constraint, options),
    ...(options.shown.promptLogprobs !== null && { prompt_logprobs: options.shown.promptLogprobs }),
    ...(request.minTokens > 0 && { min_tokens: request.minTokens }),
    ...(request.stopTokenIds.length > 0 && { stop_token_ids: request.stopTokenIds }),
    ...ownFields(request),
    ...(request.includeStop && { include_stop_str_in_output: true }),
    ...(request.ignoreEos && { ignore_eos: true }),
    ...(!request.skipSpecialTokens && { skip_special_tokens: false }),
    ...(!request.addSpecialTokens && { add_special_tokens: false }),
    ...(request.truncatePromptTokens !== null && { truncate_prompt_tokens: request.truncatePromptTokens }),
    ...(request.logprobTokenIds && { logprob_token_ids: request.logprobTokenIds }),
    ...(!request.cachePrompt && { cache_prompt: false }),
    ...(options.cacheNamespace !== null && { cache_salt: options.cacheNamespace }),
    ...(request.flex && options.flexPriority && { priority: options.flexPriority }),
    ...(request.maxPromptMs && { t_max_prompt_ms: request.maxPromptMs }),
    ...(request.maxGenerationMs && { t_max_predict_ms: request.maxGenerationMs }),
  };
  const body = {
    ...options.extra,
    model: options.model,
    prompt: request.prompts.length === 1 ? only : request.prompts,
    ...(request.suffix && { suffix: request.suffix }),
    max_tokens: maxTokensOf(request, options),
    n: request.choices,
    stream: request.stream,
    ...(request.stream && { stream_options: { include_usage: true } }),
    ...(echoesLogprobs(request, options.shown) && { echo: true }),
    ...(request.stop.length > 0 && { stop: request.stop }),
    ...(logprobs !== null && { logprobs }),
    ...(options.user !== null && { user: options.user }),
    ...sampling,
    ...asked,
  };
  // A dialect's defaults may be left out, because the client did not ask for them.
  const chosen = Object.keys(sampling).filter((name) => Object.hasOwn(options.extra, name));
  return withAllowedFields(body, [...chosen, ...Object.keys(asked)], options.flavor);
}

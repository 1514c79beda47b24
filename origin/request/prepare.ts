import { ApiError } from '@continuo/shared/errors.ts';
import type {
  GenerationEvent,
  GenerationRequest,
  WireConstraint,
  WirePrompt,
} from '@continuo/shared/generation.ts';
import {
  ENGINE_FIELDS,
  type EngineEvent,
  type EngineFields,
  type Submission,
  type SubmittedPrompt,
} from '../engine/messages.ts';
import { checkImageCount, readImages } from '../images/prompt-images.ts';
import type { LockCaller } from '../process/fair-mutex.ts';
import { firstTokens } from '../tokenizer/token-bytes.ts';
import { checkPrompt, checkRequest, checkRows, fillsGap } from './checks.ts';
import { completionBudget, promptBudget } from './context-budget.ts';
import { continuationPrompt, type EncodedContext, encodeContext } from './continuation-prompt.ts';
import { imagePrompt } from './image-prompt.ts';
import { infillPrompt } from './infill-prompt.ts';
import { type PromptContext, plainPrompt, type TokenizedPrompt } from './prompt.ts';
import { ECHO_TOKENS, echoEvent } from './prompt-echo.ts';
import { promptEvent } from './prompt-event.ts';
import { encodeBadWords, encodeBiases, encodeBreakers } from './sampling-texts.ts';
import type { ServedModel } from './served-model.ts';
import { healingStart } from './token-healing.ts';

/**
 * Tokens of a stream that arrive within this time share an event. The delay is not visible, and an event
 * costs the origin, the Worker and the client about as much CPU time as a token of a small model.
 */
const STREAM_INTERVAL_MS = 20;

/** A plain answer is sent at its end. Until then the Worker needs counts this often, for billing. */
const PLAIN_INTERVAL_MS = 250;

interface PreparationContext {
  readonly model: ServedModel;
  /** The engine's name of the request, unique in this process. */
  readonly engineId: string;
  /** Unix milliseconds at which the request arrived. */
  readonly receivedAt: number;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
  /** Returns a random seed, for requests without one. */
  drawSeed(): number;
}

interface PreparedGeneration {
  readonly submission: Submission;
  /** Events that precede the engine's. */
  readonly preamble: readonly GenerationEvent[];
  /** Replaces the engine's tokens and stops by the prompt and stop strings that the client sent. */
  restore(event: EngineEvent): GenerationEvent;
}

/**
 * Prepares a request for the engine: check it, encode its prompts, fit them to the context, read its images.
 * @throws ApiError a 400 that names the field; the signal's reason if the client disconnects
 */
export async function prepareGeneration(
  request: GenerationRequest,
  context: PreparationContext,
): Promise<PreparedGeneration> {
  const { model, signal } = context;
  checkRequest(request, model);
  const caller = { tenantId: request.tenantId, weight: request.weight, signal };
  const prompts = await encodePrompts(request, model, caller);
  const fitted = prompts.map((prompt, index) => ({
    tokens: prompt.tokens,
    maxTokens: completionBudget(request, prompt.tokens.length, model.contextLength, paramOf(request, index)),
    logprobsFrom: logprobsFrom(request, prompt),
    ...(prompt.echo.kind === 'continuation' && { echoFrom: prompt.echo.contextTokens }),
    ...healing(request, prompt, model),
  }));
  checkRows(request, fitted, model);
  // Images come last, because reading them is the most work.
  const submitted = await withImages(request, prompts, fitted, model, caller);
  const hiddenStops = addedTokensOf(request.stop, model);
  const { badWords, drySequenceBreakers: _, seed, logitBiasTexts = [], ...sampling } = request.sampling;
  const logitBias = [...sampling.logitBias, ...(await encodeBiases(logitBiasTexts, { model, caller }))];
  const badTokens = await encodeBadWords(badWords, { model, caller });
  const dryBreakers = await encodeBreakers(request.sampling, { model, caller });
  const submission: Submission = {
    ...engineFields(request),
    requestId: context.engineId,
    flex: request.flex ?? false,
    cacheNamespace: JSON.stringify([request.tenantId, request.cacheSalt]),
    sampling: { ...sampling, logitBias, badTokens, dryBreakers, seed: seed ?? context.drawSeed() },
    prompts: submitted,
    constraint: request.constraint && constraintJson(request.constraint),
    endTokenIds: infillEndTokens(request, model),
    stopTokenIds: [...new Set([...request.stopTokenIds, ...hiddenStops.keys()])],
    echo: request.echo && prompts.every(({ echo }) => echo.kind === 'tokens'),
    eventIntervalMs: request.stream ? STREAM_INTERVAL_MS : PLAIN_INTERVAL_MS,
    deadline: context.receivedAt + request.deadlineMs,
  };
  const restore = (event: EngineEvent): GenerationEvent => {
    if (event.type === 'prompt') {
      const promptResult = promptEvent(event, fitted[event.prompt]!, request, model.tokenizer.tokenBytes);
      return echoEvent(promptResult, prompts[event.prompt]?.echo ?? ECHO_TOKENS);
    }
    if (event.type !== 'finish' || typeof event.stopReason !== 'number') return event;
    return { ...event, stopReason: hiddenStops.get(event.stopReason) ?? event.stopReason };
  };
  return { submission, preamble: preambleOf(request, prompts, model), restore };
}

/** Returns the name of a prompt in error messages. */
function paramOf({ prompts, context }: GenerationRequest, index: number): string {
  if (context !== undefined) return `continuations[${index}]`;
  return prompts.length === 1 ? 'prompt' : `prompt[${index}]`;
}

/** Returns the position whose logits give the first logprob of a prompt, if its logprobs are wanted. */
function logprobsFrom(
  { promptLogprobStart = 0 }: GenerationRequest,
  { tokens, echo }: TokenizedPrompt,
): number {
  if (echo.kind === 'continuation') return echo.contextTokens - 1;
  if (promptLogprobStart === -1) return tokens.length - 1;
  if (promptLogprobStart < tokens.length) return promptLogprobStart;
  const message = `Invalid 'prompt_logprob_start': expected a position of the prompt (0 to ${tokens.length - 1}), or -1 to score none of it, but got ${promptLogprobStart} instead.`;
  throw new ApiError('invalid_value', message, { param: 'prompt_logprob_start' });
}

/** Returns from where the end of a prompt is chosen again, if anything is. */
function healing(
  { tokenHealing, maxTokens }: GenerationRequest,
  { tokens, images }: TokenizedPrompt,
  { tokenizer: { tokenBytes }, vocabularySize }: ServedModel,
): Pick<SubmittedPrompt, 'healFrom'> {
  const image = images.at(-1);
  const end = image === undefined ? 0 : image.at + image.count;
  const isWanted = tokenHealing && maxTokens !== 0;
  const healFrom = isWanted ? healingStart(tokens, end, firstTokens(tokenBytes, vocabularySize)) : null;
  return healFrom === null ? {} : { healFrom };
}

async function encodePrompts(
  request: GenerationRequest,
  model: ServedModel,
  caller: LockCaller,
): Promise<TokenizedPrompt[]> {
  const common = { request, model, caller, budget: promptBudget(request, model.contextLength) };
  const before = request.context && (await encodeContext(request.context, { ...common, param: 'prompt' }));
  const encoded: TokenizedPrompt[] = [];
  for (const [index, prompt] of request.prompts.entries()) {
    const param = paramOf(request, index);
    const result = await encodeByKind(prompt, before, { ...common, param });
    checkPrompt(result, param, model);
    encoded.push(result);
    caller.signal.throwIfAborted();
  }
  return encoded;
}

/** @param before the context, if the prompt is a continuation */
function encodeByKind(
  prompt: WirePrompt,
  before: EncodedContext | undefined,
  context: PromptContext,
): Promise<TokenizedPrompt> {
  const { request, model } = context;
  if (before !== undefined) return continuationPrompt(prompt, before, context);
  if (model.infill && fillsGap(request)) return infillPrompt(prompt, model.infill, context);
  if (model.images && request.images) return imagePrompt(prompt, model.images, context);
  return plainPrompt(prompt, context);
}

async function withImages(
  { images = [] }: GenerationRequest,
  prompts: readonly TokenizedPrompt[],
  submitted: readonly SubmittedPrompt[],
  model: ServedModel,
  caller: LockCaller,
): Promise<readonly SubmittedPrompt[]> {
  const positions = prompts.map((prompt) => prompt.images);
  checkImageCount(images, positions);
  if (model.images === null || images.length === 0) return submitted;
  const read = await readImages(images, positions, model.images, caller);
  return submitted.map((prompt, index) => {
    const ofPrompt = read[index] ?? [];
    return ofPrompt.length === 0 ? prompt : { ...prompt, images: ofPrompt };
  });
}

const engineFields = (request: GenerationRequest): EngineFields =>
  Object.fromEntries(ENGINE_FIELDS.map((name) => [name, request[name]])) as EngineFields;

function constraintJson(constraint: WireConstraint): string {
  try {
    return JSON.stringify(constraint);
  } catch {
    throw new ApiError('invalid_json_schema', 'The schema is nested too deeply.', { param: 'json_schema' });
  }
}

/** Returns the stop strings that are exactly one added token, by id: its text is hidden. */
function addedTokensOf(stop: readonly string[], { tokenizer }: ServedModel): ReadonlyMap<number, string> {
  const ids = new Map<number, string>();
  for (const text of stop) {
    const id = tokenizer.addedTokens.get(text);
    if (id !== undefined) ids.set(id, text);
  }
  return ids;
}

/** Tokens that end an infill in addition to the end tokens of every text. */
function infillEndTokens(request: GenerationRequest, { infill, tokenizer }: ServedModel): number[] {
  return infill && fillsGap(request) ? infill.endTokenIds.filter((id) => !tokenizer.eosIds.includes(id)) : [];
}

/** Returns the events that precede the engine's: acceptance, and echoed prompts. */
function preambleOf(
  { echo: wantsEcho }: GenerationRequest,
  prompts: readonly TokenizedPrompt[],
  model: ServedModel,
): GenerationEvent[] {
  const promptTokens = prompts.map(({ tokens }) => tokens.length);
  const cutPrompts = prompts.flatMap(({ isCut }, index) => (isCut ? [index] : []));
  const echoes = prompts.flatMap(({ echo }, prompt): GenerationEvent[] =>
    wantsEcho && echo.kind === 'fixed'
      ? [{ type: 'prompt', prompt, text: echo.text, ids: [...echo.ids] }]
      : [],
  );
  const cut = cutPrompts.length > 0 && { cutPrompts };
  return [{ type: 'accepted', model: model.id, promptTokens, ...cut }, ...echoes];
}

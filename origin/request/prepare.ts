import { ApiError } from '../../shared/errors.ts';
import type { GenerationEvent, GenerationRequest, WireConstraint } from '../../shared/generation.ts';
import type { Submission } from '../engine/messages.ts';
import type { Caller } from '../fair-mutex.ts';
import { checkCount, readImages } from '../images/prompt-images.ts';
import { completionBudget } from './context-budget.ts';
import { type TokenisedPrompt, tokenisePrompt, unknownToken } from './prompt.ts';
import { asWritten, TOLD_BY_TOKENS } from './prompt-echo.ts';
import type { ServedModel } from './served-model.ts';

/** A request made ready for the engine: tokenised, fitted to the context, every limit known. */

/**
 * Tokens that come faster than fifty a second share an event: nobody sees the difference, and every event costs the
 * origin, the Worker and the client about as much as computing a token of a small model.
 */
const STREAM_INTERVAL_MS = 20;

/** A plain answer is sent at its end; until then the Worker hears often enough to know what to bill. */
const PLAIN_INTERVAL_MS = 250;

export interface PreparationContext {
  readonly model: ServedModel;
  /** The engine's name of the request; unique in this process, whatever the caller calls it. */
  readonly engineId: string;
  /** Unix milliseconds at which the request arrived. */
  readonly receivedAt: number;
  /** Aborted when the caller leaves. */
  readonly signal: AbortSignal;
  /** A fresh random seed, for requests that name none. */
  drawSeed(): number;
}

export interface PreparedGeneration {
  readonly submission: Submission;
  /** Events that precede the engine's. */
  readonly preamble: readonly GenerationEvent[];
  /** An event of the engine as the caller is to see it. */
  shown(event: GenerationEvent): GenerationEvent;
}

/** @throws ApiError what the caller should see instead of a stream; the signal's reason, where there is no caller */
export async function prepareGeneration(
  request: GenerationRequest,
  context: PreparationContext,
): Promise<PreparedGeneration> {
  const { model, signal } = context;
  checkInfill(request, model);
  checkImages(request, model);
  checkTokenIds(request, model);
  const caller = { tenantId: request.tenantId, signal };
  const prompts: TokenisedPrompt[] = [];
  for (const prompt of request.prompts) {
    prompts.push(await tokenisePrompt(prompt, request, model, caller));
    signal.throwIfAborted();
  }
  const submission = submissionOf(request, prompts, context);
  return {
    submission: await withImages(submission, request.images ?? [], prompts, model, caller),
    preamble: [
      {
        type: 'accepted',
        model: model.id,
        promptTokens: prompts.map(({ tokens }) => tokens.length),
      },
      ...(request.echo ? prompts.flatMap(shownPrompt) : []),
    ],
    shown: inCallersWords(request, model, prompts),
  };
}

function checkInfill(request: GenerationRequest, model: ServedModel): void {
  if (!request.suffix) return;
  const refuse = (why: string) => {
    throw new ApiError('unsupported_parameter', `Unsupported parameter: 'suffix' ${why}.`, {
      param: 'suffix',
    });
  };
  if (!model.infill) refuse('is not supported with this model, which has no fill-in-the-middle template');
  if (request.promptLogprobs !== null) refuse("is not supported together with 'echo' and 'logprobs'");
}

function checkImages({ images, suffix, promptLogprobs }: GenerationRequest, model: ServedModel): void {
  if (images === undefined) return;
  const refuse = (why: string) => {
    throw new ApiError('unsupported_parameter', `Unsupported parameter: ${why}.`, { param: 'images' });
  };
  if (model.images === null) refuse("this model takes no 'images'");
  if (suffix) refuse("'images' is not supported together with 'suffix'");
  if (promptLogprobs !== null) refuse("'images' is not supported together with logprobs of the prompt");
}

/** Images are read last, because that is the most work. */
async function withImages(
  submission: Submission,
  images: readonly string[],
  prompts: readonly TokenisedPrompt[],
  model: ServedModel,
  caller: Caller,
): Promise<Submission> {
  const places = prompts.map((prompt) => prompt.places);
  checkCount(images, places);
  if (model.images === null || images.length === 0) return submission;
  const read = await readImages(images, places, model.images, caller);
  const withThem = submission.prompts.map((prompt, index) => {
    const own = read[index] ?? [];
    return own.length === 0 ? prompt : { ...prompt, images: own };
  });
  return { ...submission, prompts: withThem };
}

function checkTokenIds(request: GenerationRequest, model: ServedModel): void {
  const { logitBias, allowedTokenIds } = request.sampling;
  const check = (param: string, ids: readonly number[]) => {
    const unknown = ids.find((id) => id >= model.vocabularySize);
    if (unknown !== undefined) throw unknownToken(unknown, param, model);
  };
  check(
    'logit_bias',
    logitBias.map(([id]) => id),
  );
  check('allowed_token_ids', allowedTokenIds ?? []);
  check('stop_token_ids', request.stopTokenIds);
}

function submissionOf(
  request: GenerationRequest,
  prompts: readonly TokenisedPrompt[],
  { model, engineId, receivedAt, drawSeed }: PreparationContext,
): Submission {
  return {
    requestId: engineId,
    tenantId: request.tenantId,
    weight: request.weight,
    cacheKey: JSON.stringify([request.tenantId, request.cacheSalt]),
    cachePrompt: request.cachePrompt,
    prompts: prompts.map(({ tokens }) => ({
      tokens,
      maxTokens: completionBudget(request, tokens.length, model.contextLength),
    })),
    choices: request.choices,
    minTokens: request.minTokens,
    stop: request.stop,
    stopTokenIds: [...new Set([...request.stopTokenIds, ...namedStops(request, model).keys()])],
    endTokenIds: infillEnds(request, model),
    includeStop: request.includeStop,
    ignoreEos: request.ignoreEos,
    sampling: request.sampling,
    seed: request.sampling.seed ?? drawSeed(),
    constraint: request.constraint && serialized(request.constraint),
    logprobs: request.logprobs,
    promptLogprobs: request.promptLogprobs,
    echo: request.echo && prompts.every(({ shown }) => shown === null),
    scores: request.scores,
    tokenIds: request.tokenIds,
    skipSpecialTokens: request.skipSpecialTokens,
    eventIntervalMs: request.stream ? STREAM_INTERVAL_MS : PLAIN_INTERVAL_MS,
    deadline: receivedAt + request.deadlineMs,
  };
}

function serialized(constraint: WireConstraint): string {
  try {
    return JSON.stringify(constraint);
  } catch {
    throw new ApiError('invalid_json_schema', 'The schema is nested too deeply.', { param: 'json_schema' });
  }
}

/** Stop strings that are exactly one added token must work although that token's text is hidden: id → string. */
function namedStops({ stop }: GenerationRequest, { tokenizer }: ServedModel): ReadonlyMap<number, string> {
  return new Map(
    stop.flatMap((text): [number, string][] => {
      const id = tokenizer.addedTokens.get(text);
      return id === undefined ? [] : [[id, text]];
    }),
  );
}

/** What ends an infill besides the end tokens, which end every text. */
function infillEnds({ suffix }: GenerationRequest, { infill, tokenizer }: ServedModel): number[] {
  return infill && suffix ? infill.stopIds.filter((id) => !tokenizer.eosIds.includes(id)) : [];
}

/** Prompts and stops are told as they were written, whatever the engine got in their place. */
function inCallersWords(
  request: GenerationRequest,
  model: ServedModel,
  prompts: readonly Pick<TokenisedPrompt, 'written'>[],
): PreparedGeneration['shown'] {
  const named = namedStops(request, model);
  return (event) => {
    if (event.type === 'prompt') return asWritten(event, prompts[event.prompt]?.written ?? TOLD_BY_TOKENS);
    if (event.type !== 'finish' || typeof event.stopReason !== 'number') return event;
    return { ...event, stopReason: named.get(event.stopReason) ?? event.stopReason };
  };
}

const shownPrompt = ({ shown }: TokenisedPrompt, prompt: number): GenerationEvent[] =>
  shown ? [{ type: 'prompt', prompt, text: shown.text, ids: [...shown.ids] }] : [];

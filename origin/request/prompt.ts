import { ApiError } from '@continuo/shared/errors.ts';
import type { GenerationRequest, WirePrompt } from '@continuo/shared/generation.ts';
import { type ImagePositions, imagePositions, withImageTokens } from '../images/prompt-images.ts';
import type { LockCaller } from '../process/fair-mutex.ts';
import type { EncodeOptions } from '../tokenizer/tokenizer.ts';
import { reachableText, refuseHopelessText } from './context-budget.ts';
import { addedTokenCount, ECHO_TOKENS, leadingSpaces, type PromptEcho } from './prompt-echo.ts';
import type { ServedModel } from './served-model.ts';

/** A prompt as the engine receives it. */
export interface TokenizedPrompt {
  readonly tokens: Int32Array;
  readonly echo: PromptEcho;
  readonly images: ImagePositions;
  /** A part of it was left out. */
  readonly isCut?: boolean;
}

/** Everything that the tokens of one prompt depend on. */
export interface PromptContext {
  readonly request: GenerationRequest;
  readonly model: ServedModel;
  readonly caller: LockCaller;
  /** The prompt's name in error messages: `prompt`, `prompt[2]`, or `continuations[2]`. */
  readonly param: string;
  /** Maximum number of tokens to keep; null = the prompt is never cut. */
  readonly budget: number | null;
}

/**
 * Returns the ids of a prompt given as text, ids or a mixture. The parts of a mixture are encoded separately
 * and joined.
 * @throws ApiError 400 for an id outside the vocabulary or a text that cannot fit
 */
export async function encodePrompt(
  prompt: WirePrompt,
  context: PromptContext,
  options: EncodeOptions,
): Promise<number[]> {
  const ids: number[] = [];
  const { model, caller, param } = context;
  const parts = typeof prompt === 'string' ? [prompt] : prompt;
  for (const [index, part] of parts.entries()) {
    if (typeof part === 'number') {
      if (part >= model.vocabularySize) throw unknownToken(part, `${param}[${index}]`, model);
      ids.push(part);
      continue;
    }
    const text = boundedText(part, 'end', context);
    const marked = markedText(text, options.parseSpecial, model);
    const addSpecialTokens = index === 0 && options.addSpecialTokens;
    const encoded = await model.encoder.encode(marked, { ...options, addSpecialTokens }, caller);
    for (const id of Array.from(encoded)) ids.push(id);
  }
  return ids;
}

/** Returns a text with the model's own tokens for image marks, unless their spelling is text. */
export const markedText = (text: string, parseSpecial: boolean, { images }: ServedModel): string =>
  images !== null && parseSpecial ? withImageTokens(text, images) : text;

/**
 * Returns the part of a text that is worth encoding: all of it, or what the kept end or start can reach.
 * @throws ApiError context_length_exceeded if the text is too long for every tokenization
 */
export function boundedText(
  text: string,
  kept: 'start' | 'end',
  { request, model, budget, param }: PromptContext,
): string {
  const { tokenizer, contextLength } = model;
  if (budget !== null)
    return reachableText(text, kept, tokenizer.longestSpan, Math.min(budget, contextLength + 1));
  refuseHopelessText(text, tokenizer.longestSpan, contextLength, request.maxTokens, param);
  return text;
}

/** The error for a token id that the model does not have. */
export const unknownToken = (id: number, param: string, model: ServedModel): ApiError =>
  new ApiError(
    'invalid_value',
    `Invalid '${param}': token id ${id} is outside the vocabulary of this model (0 to ${model.vocabularySize - 1}).`,
    { param },
  );

/**
 * Returns the tokens of a prompt. If there are none, the token that begins a new document.
 * @throws ApiError 400 if the model has no such token
 */
export function begun(ids: number[], { model, param }: PromptContext): number[] {
  const { startId } = model.tokenizer;
  if (ids.length > 0) return ids;
  if (startId !== null) return [startId];
  const message = `Invalid '${param}': it is empty, and this model has no token that begins a text. Send at least one character, or the id of a token to begin with.`;
  throw new ApiError('invalid_value', message, { param });
}

/** Encodes a prompt that the model continues. If it exceeds the budget, its end is kept. */
export async function plainPrompt(prompt: WirePrompt, context: PromptContext): Promise<TokenizedPrompt> {
  const { request, model, budget } = context;
  const encoded = await encodePrompt(prompt, context, {
    addSpecialTokens: request.addSpecialTokens,
    parseSpecial: !request.plainText,
  });
  const ids = begun(encoded, context);
  const kept = budget === null ? ids : ids.slice(Math.max(0, ids.length - budget));
  const tokens = Int32Array.from(kept);
  const isCut = kept.length < ids.length;
  return {
    tokens,
    echo: isCut ? ECHO_TOKENS : echoOf(prompt, encoded, context),
    images: model.images ? imagePositions(tokens, model.images) : [],
    isCut,
  };
}

function echoOf(prompt: WirePrompt, ids: readonly number[], { request, model }: PromptContext): PromptEcho {
  const { tokenizer } = model;
  const isText = typeof prompt === 'string';
  const first = isText ? prompt : prompt[0];
  const spaces = typeof first === 'string' ? leadingSpaces(first) : 0;
  return {
    kind: 'tokens',
    text: isText && request.skipSpecialTokens ? prompt : null,
    // An empty text has one token at least, and none of them is its own.
    addedTokens: prompt === '' ? Infinity : isText ? addedTokenCount(prompt, ids, tokenizer, request) : 0,
    leadingSpaces: tokenizer.addsLeadingSpace ? spaces : Number.POSITIVE_INFINITY,
  };
}

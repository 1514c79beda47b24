import { ApiError } from '../../shared/errors.ts';
import type { GenerationRequest, WirePrompt } from '../../shared/generation.ts';
import type { Caller } from '../fair-mutex.ts';
import { type ImageInput, type Places, placesOf, spread, withImageTokens } from '../images/prompt-images.ts';
import { encodeAfter } from '../infill/encode-after.ts';
import { assemble, cutToFit, type Infill } from '../infill/infill.ts';
import { type EncodeOptions, PLAIN } from '../tokenizer/tokenizer.ts';
import { promptBudget, reachable, refuseHopeless } from './context-budget.ts';
import { addedBefore, spacesBefore, TOLD_BY_TOKENS, type Written } from './prompt-echo.ts';
import type { ServedModel } from './served-model.ts';

/** A prompt as the engine will see it. */
export interface TokenisedPrompt {
  readonly tokens: Int32Array;
  /** What echo shows instead of the tokens' own text: an infill's prompt without its template, images as their marks. */
  readonly shown: { readonly text: string; readonly ids: readonly number[] } | null;
  /** Where images are to stand. */
  readonly places: Places;
  /** What echo tells besides the tokens' own text. */
  readonly written: Written;
}

/** What the tokens of one prompt depend on. */
interface Reading {
  readonly request: GenerationRequest;
  readonly model: ServedModel;
  readonly caller: Caller;
  /** Most tokens to keep; null = the prompt is never cut. */
  readonly budget: number | null;
}

/** @throws ApiError 400 naming the prompt; the signal's reason, should the caller leave before its turn */
export async function tokenisePrompt(
  prompt: WirePrompt,
  request: GenerationRequest,
  model: ServedModel,
  caller: Caller,
): Promise<TokenisedPrompt> {
  const reading = { request, model, caller, budget: promptBudget(request, model.contextLength) };
  const tokenised =
    model.infill && request.suffix
      ? await infillPrompt(prompt, request.suffix, model.infill, reading)
      : model.images && request.images
        ? await seeingPrompt(prompt, model.images, reading)
        : await plainPrompt(prompt, reading);
  if (tokenised.tokens.length === 0) throw emptyPrompt(nameOf(prompt, reading));
  // Tokenizers may have tokens that were added after the model was made.
  const unknown = tokenised.tokens.find((id) => id >= model.vocabularySize);
  if (unknown !== undefined) throw unknownToken(unknown, nameOf(prompt, reading), model);
  return tokenised;
}

async function plainPrompt(prompt: WirePrompt, reading: Reading): Promise<TokenisedPrompt> {
  const { request, model, budget } = reading;
  const { addSpecialTokens } = request;
  const ids = await promptIds(prompt, reading, { addSpecialTokens, parseSpecial: true });
  const tokens = Int32Array.from(budget === null ? ids : lastOf(ids, budget));
  const places = model.images ? placesOf(tokens, model.images) : [];
  const isWhole = tokens.length === ids.length;
  return { tokens, shown: null, places, written: isWhole ? writtenAs(prompt, ids, reading) : TOLD_BY_TOKENS };
}

function writtenAs(prompt: WirePrompt, ids: readonly number[], { request, model }: Reading): Written {
  const { tokenizer } = model;
  const first = typeof prompt === 'string' ? prompt : prompt[0];
  const spaces = typeof first === 'string' ? spacesBefore(first) : 0;
  return {
    text: typeof prompt === 'string' && request.skipSpecialTokens ? prompt : null,
    added: typeof prompt === 'string' && request.addSpecialTokens ? addedBefore(prompt, ids, tokenizer) : 0,
    spaces: tokenizer.addsLeadingSpace ? spaces : Infinity,
  };
}

/** With room for its images. It is never cut: half an image means nothing. */
async function seeingPrompt(
  prompt: WirePrompt,
  images: ImageInput,
  whole: Reading,
): Promise<TokenisedPrompt> {
  const { request, model, budget } = whole;
  const { addSpecialTokens } = request;
  const reading = { ...whole, budget: null };
  const sent = await promptIds(prompt, reading, { addSpecialTokens, parseSpecial: true });
  const places = placesOf(sent, images);
  // Refused for it soon. Not spread before: a body of image tokens would become gigabytes.
  const isTooMany = places.length > (request.images ?? []).length;
  const ids = isTooMany ? sent : spread(sent, images);
  if (budget !== null && ids.length > budget) throw cutsImages(ids.length, budget);
  const text = typeof prompt === 'string' ? prompt : model.tokenizer.decode(sent, request);
  return { tokens: Int32Array.from(ids), shown: { text, ids: sent }, places, written: TOLD_BY_TOKENS };
}

async function infillPrompt(
  prompt: WirePrompt,
  suffix: string,
  infill: Infill,
  reading: Reading,
): Promise<TokenisedPrompt> {
  const { request, model, budget } = reading;
  const { tokenizer, encoder } = model;
  const before = await promptIds(prompt, reading, PLAIN);
  const after = await encodeAfter(encoder, tokenizer, readable(suffix, 'start', reading), reading.caller);
  const whole = { start: request.addSpecialTokens ? tokenizer.prefixIds : [], before, after };
  const parts = budget === null ? whole : cutToFit(infill, whole, budget);
  const ids = Array.from(parts.before);
  const uncut = typeof prompt === 'string' && ids.length === before.length;
  const text = uncut ? prompt : tokenizer.decode(ids, request);
  const tokens = Int32Array.from(assemble(infill, parts));
  return { tokens, shown: { text, ids }, places: [], written: TOLD_BY_TOKENS };
}

/** Ids of a text, of ids, or of a mixture: its parts are tokenised one by one and joined. */
async function promptIds(prompt: WirePrompt, reading: Reading, options: EncodeOptions): Promise<number[]> {
  const ids: number[] = [];
  const { model, caller } = reading;
  const parts = typeof prompt === 'string' ? [prompt] : prompt;
  for (const [index, part] of parts.entries()) {
    if (typeof part === 'number') {
      if (part >= model.vocabularySize)
        throw unknownToken(part, `${nameOf(prompt, reading)}[${index}]`, model);
      ids.push(part);
    } else {
      const addSpecialTokens = options.addSpecialTokens && index === 0;
      const text = readable(part, 'end', reading);
      const marked = model.images && options.parseSpecial ? withImageTokens(text, model.images) : text;
      const encoded = await model.encoder.encode(marked, { ...options, addSpecialTokens }, caller);
      for (const id of Array.from(encoded)) ids.push(id);
    }
  }
  return ids;
}

/**
 * The part of a text that is worth tokenising: all of it, or what the kept end (or start) can reach.
 * @throws ApiError context_length_exceeded for a text that is too long whatever its tokens are
 */
function readable(text: string, kept: 'start' | 'end', { request, model, budget }: Reading): string {
  const { tokenizer, contextLength } = model;
  if (budget !== null)
    return reachable(text, kept, tokenizer.longestSpan, Math.min(budget, contextLength + 1));
  refuseHopeless(text, tokenizer.longestSpan, contextLength, request.maxTokens);
  return text;
}

const lastOf = (ids: readonly number[], count: number) => ids.slice(Math.max(0, ids.length - count));

const emptyPrompt = (param: string) =>
  new ApiError('invalid_value', `Invalid '${param}': it has no tokens, and this model needs at least one.`, {
    param,
  });

const cutsImages = (tokens: number, budget: number) =>
  new ApiError(
    'conflicting_parameters',
    `Conflicting parameters: a prompt with 'images' cannot be cut; it has ${tokens} tokens, ${budget} are to be kept.`,
    { param: 'truncate_prompt_tokens' },
  );

/** The only prompt is the field itself. */
const nameOf = (prompt: WirePrompt, { request: { prompts } }: Reading): string =>
  prompts.length === 1 ? 'prompt' : `prompt[${prompts.indexOf(prompt)}]`;

/** A token id that the model does not have. */
export const unknownToken = (id: number, param: string, model: ServedModel): ApiError =>
  new ApiError(
    'invalid_value',
    `Invalid '${param}': token id ${id} is outside the vocabulary of this model (0 to ${model.vocabularySize - 1}).`,
    { param },
  );

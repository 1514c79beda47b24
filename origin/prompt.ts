import { ApiError } from '../shared/errors.ts';
import type { GenerationRequest, WirePrompt } from '../shared/generation.ts';
import { promptBudget, refuseHopeless } from './context.ts';
import { encodeAfter } from './infill/encode-after.ts';
import { assemble, cutToFit, type Infill } from './infill/infill.ts';
import type { ServedModel } from './served-model.ts';

/** A prompt as the engine will see it. */
export interface TokenisedPrompt {
  readonly tokens: Int32Array;
  /** What echo shows instead of the tokens' own text: an infill's prompt without its template. */
  readonly shown: { readonly text: string; readonly ids: readonly number[] } | null;
}

/** @throws ApiError 400 naming the prompt */
export async function tokenisePrompt(
  prompt: WirePrompt,
  request: GenerationRequest,
  model: ServedModel,
): Promise<TokenisedPrompt> {
  const budget = promptBudget(request, model.contextLength);
  const { infill } = model;
  if (infill && request.suffix) {
    return infillPrompt(prompt, request.suffix, request, { ...model, infill }, budget);
  }
  const ids = await promptIds(prompt, request, model, true);
  if (ids.length === 0) throw emptyPrompt();
  return { tokens: Int32Array.from(budget === null ? ids : lastOf(ids, budget)), shown: null };
}

async function infillPrompt(
  prompt: WirePrompt,
  suffix: string,
  request: GenerationRequest,
  model: ServedModel & { readonly infill: Infill },
  budget: number | null,
): Promise<TokenisedPrompt> {
  const { tokenizer, encoder, infill } = model;
  if (budget === null) {
    refuseHopeless(suffix, tokenizer.longestSpan, model.contextLength, request.maxTokens);
  }
  const before = await promptIds(prompt, { ...request, addSpecialTokens: false }, model, false);
  const after = await encodeAfter(encoder, tokenizer, suffix);
  const whole = { start: request.addSpecialTokens ? tokenizer.prefixIds : [], before, after };
  const parts = budget === null ? whole : cutToFit(infill, whole, budget);
  const ids = Array.from(parts.before);
  const uncut = typeof prompt === 'string' && ids.length === before.length;
  const text = uncut ? prompt : tokenizer.decode(ids, request);
  return { tokens: Int32Array.from(assemble(infill, parts)), shown: { text, ids } };
}

/** Ids of a text, of ids, or of a mixture: its parts are tokenised one by one and joined. */
async function promptIds(
  prompt: WirePrompt,
  request: GenerationRequest,
  model: ServedModel,
  parseSpecial: boolean,
): Promise<number[]> {
  const ids: number[] = [];
  const parts = typeof prompt === 'string' ? [prompt] : prompt;
  for (const [index, part] of parts.entries()) {
    if (typeof part === 'number') {
      if (part >= model.vocabularySize) throw unknownToken(part, model);
      ids.push(part);
    } else {
      const addSpecialTokens = request.addSpecialTokens && index === 0;
      for (const id of Array.from(await textIds(part, request, model, { addSpecialTokens, parseSpecial }))) {
        ids.push(id);
      }
    }
  }
  return ids;
}

async function textIds(
  text: string,
  request: GenerationRequest,
  { tokenizer, encoder, contextLength }: ServedModel,
  options: { readonly addSpecialTokens: boolean; readonly parseSpecial: boolean },
): Promise<ArrayLike<number>> {
  if (request.truncatePromptTokens === null) {
    refuseHopeless(text, tokenizer.longestSpan, contextLength, request.maxTokens);
  }
  return encoder.encode(text, options);
}

const lastOf = (ids: readonly number[], count: number) => ids.slice(Math.max(0, ids.length - count));

const emptyPrompt = () =>
  new ApiError('invalid_value', "Invalid 'prompt': it has no tokens, and this model needs at least one.", {
    param: 'prompt',
  });

const unknownToken = (id: number, model: ServedModel) =>
  new ApiError(
    'invalid_value',
    `Invalid 'prompt': token id ${id} is outside the vocabulary of this model (0 to ${model.vocabularySize - 1}).`,
    { param: 'prompt' },
  );

import { ApiError } from '@continuo/shared/errors.ts';
import type { GenerationRequest } from '@continuo/shared/generation.ts';
import { rowsTooLarge, wholeRowLength } from '@continuo/shared/logprob.ts';
import type { SubmittedPrompt } from '../engine/messages.ts';
import { type TokenizedPrompt, unknownToken } from './prompt.ts';
import type { ServedModel } from './served-model.ts';

/**
 * Checks a request against the model, before anything is encoded.
 * @throws ApiError 400 that names the field
 */
export function checkRequest(request: GenerationRequest, model: ServedModel): void {
  checkInfill(request, model);
  checkImages(request, model);
  checkTokenIds(request, model);
}

/**
 * Checks an encoded prompt. A tokenizer may have tokens that were added after the model was trained.
 * @throws ApiError 400 that names the prompt
 */
export function checkPrompt({ tokens }: TokenizedPrompt, param: string, model: ServedModel): void {
  if (tokens.length === 0) {
    const message = `Invalid '${param}': it has no tokens, and this model needs at least one.`;
    throw new ApiError('invalid_value', message, { param });
  }
  for (const id of tokens) if (id >= model.vocabularySize) throw unknownToken(id, param, model);
}

/**
 * Checks the size of rows that have the whole vocabulary. The engine counts other ones.
 * @throws ApiError 400 if they may become too large
 */
export function checkRows(
  { logprobRows, topLogprobs, choices }: GenerationRequest,
  prompts: readonly SubmittedPrompt[],
  { vocabularySize }: ServedModel,
): void {
  if (logprobRows === undefined || logprobRows.topP !== undefined) return;
  const rows = prompts.reduce((sum, { tokens, maxTokens, logprobsFrom = 0 }) => {
    const ofPrompt = logprobRows.prompt ? tokens.length - 1 - logprobsFrom : 0;
    return sum + choices * (ofPrompt + (topLogprobs === null ? 0 : maxTokens));
  }, 0);
  const required = rows * wholeRowLength(vocabularySize, logprobRows);
  if (required > logprobRows.maxCharacters) throw rowsTooLarge(logprobRows.maxCharacters, required);
}

/** True if the prompt takes the model's fill-in-the-middle template. */
export const fillsGap = ({ suffix, infill }: GenerationRequest): boolean =>
  Boolean(suffix) || infill !== undefined;

function checkInfill(request: GenerationRequest, { infill }: ServedModel): void {
  const { promptTopLogprobs } = request;
  if (!fillsGap(request)) return;
  if (!infill)
    throw unsupported(
      'suffix',
      "'suffix' needs a model with a fill-in-the-middle template; this one has none",
    );
  if (promptTopLogprobs !== null)
    throw unsupported('suffix', "'suffix' cannot be combined with 'echo' and 'logprobs'");
}

function checkImages(request: GenerationRequest, model: ServedModel): void {
  const { images, promptTopLogprobs } = request;
  if (images === undefined) return;
  if (model.images === null) throw unsupported('images', "this model does not accept 'images'");
  if (fillsGap(request)) throw unsupported('images', "'images' cannot be combined with 'suffix'");
  if (promptTopLogprobs !== null)
    throw unsupported('images', "'images' cannot be combined with logprobs of the prompt");
}

function checkTokenIds(
  { sampling, stopTokenIds, logprobTokenIds = [] }: GenerationRequest,
  model: ServedModel,
): void {
  const fields = {
    logit_bias: sampling.logitBias.map(([id]) => id),
    allowed_token_ids: sampling.allowedTokenIds ?? [],
    stop_token_ids: stopTokenIds,
    logprob_token_ids: logprobTokenIds,
  };
  for (const [param, ids] of Object.entries(fields)) {
    const unknown = ids.find((id) => id >= model.vocabularySize);
    if (unknown !== undefined) throw unknownToken(unknown, param, model);
  }
}

const unsupported = (param: string, reason: string) =>
  new ApiError('unsupported_parameter', `Unsupported parameter: ${reason}.`, { param });

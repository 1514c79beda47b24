import { ApiError } from '../../shared/errors.ts';
import {
  type DetokenizeRequest,
  type DetokenizeResult,
  detokenizeRequest,
  type TokenizeRequest,
  type TokenizeResult,
  type TokenizerInfo,
  tokenizeRequest,
} from '../../shared/tokenization.ts';
import type { ServedModel } from '../request/served-model.ts';
import { parseBody } from './body.ts';
import { closeSignal, type RouteCall, type ServerContext, sendJson, unlessAborted } from './route.ts';

/** Maximum characters of one /tokenize request. Its answer is one write, which delays other streams. */
const MAX_TEXT = 2 ** 20;

/** Maximum tokens of a request, in contexts of the model. The answer to more would delay other streams. */
const MAX_CONTEXTS = 4;

function requireTokenLimit(
  count: number,
  { contextLength }: ServedModel,
  refuse: (limit: number) => ApiError,
) {
  const limit = MAX_CONTEXTS * contextLength;
  if (count > limit) throw refuse(limit);
}

/** POST /tokenize: parses special tokens in the text, as in a prompt. */
export async function handleTokenize(
  { body, response }: RouteCall,
  { service }: ServerContext,
): Promise<void> {
  const request = parseBody(body, tokenizeRequest);
  const signal = closeSignal(response);
  const result = await service.hold(request.model, ({ model }) =>
    unlessAborted(tokenised(request, model, signal), signal),
  );
  if (result !== null) sendJson(response, 200, result);
}

/** All /tokenize requests queue as one tenant, so that they do not delay completions. */
const TOKENIZE_TENANT = '';

async function tokenised(
  { prompt, addSpecialTokens }: TokenizeRequest,
  model: ServedModel,
  signal: AbortSignal,
): Promise<TokenizeResult> {
  if (prompt.length > MAX_TEXT) {
    const message = `Invalid 'prompt': string too long. Expected at most ${MAX_TEXT} characters.`;
    throw new ApiError('string_above_max_length', message, { param: 'prompt' });
  }
  const options = { addSpecialTokens, parseSpecial: true };
  const caller = { tenantId: TOKENIZE_TENANT, signal };
  const ids = await model.encoder.encode(prompt, options, caller);
  requireTokenLimit(ids.length, model, (limit) => {
    const message = `Invalid 'prompt': ${ids.length} tokens. Expected at most ${limit}, ${MAX_CONTEXTS} times the context of this model.`;
    return new ApiError('string_above_max_length', message, { param: 'prompt' });
  });
  const tokens = Array.from(ids);
  const tokenStrings = tokens.map((id) => model.tokenizer.spelling(id));
  return { tokens, tokenStrings };
}

/** POST /detokenize: writes special tokens as their literal text. */
export async function handleDetokenize(
  { body, response }: RouteCall,
  { service }: ServerContext,
): Promise<void> {
  const request = parseBody(body, detokenizeRequest);
  sendJson(response, 200, await service.hold(request.model, ({ model }) => detokenised(request, model)));
}

function detokenised({ tokens }: DetokenizeRequest, model: ServedModel): DetokenizeResult {
  requireTokenLimit(tokens.length, model, (limit) => {
    const message = `Invalid 'tokens': ${tokens.length} tokens. Expected at most ${limit}, ${MAX_CONTEXTS} times the context of this model.`;
    return new ApiError('array_above_max_length', message, { param: 'tokens' });
  });
  const outside = tokens.findIndex((id) => id >= model.vocabularySize);
  if (outside >= 0) {
    throw new ApiError(
      'invalid_value',
      `Invalid 'tokens[${outside}]': the token id is outside the vocabulary of this model (0 to ${model.vocabularySize - 1}).`,
      { param: `tokens[${outside}]` },
    );
  }
  return { text: model.tokenizer.decode(tokens, { skipSpecialTokens: false }) };
}

/** GET /tokenizer_info?model=… */
export async function handleTokenizerInfo(
  { query, response }: RouteCall,
  { service }: ServerContext,
): Promise<void> {
  const name = query.get('model') ?? 'default';
  sendJson(response, 200, await service.hold(name, ({ model }) => tokenizerInfoOf(model)));
}

function tokenizerInfoOf(model: ServedModel): TokenizerInfo {
  const { description, bosId, prefixIds } = model.tokenizer;
  return {
    model: model.id,
    contextLength: model.contextLength,
    vocabularySize: model.vocabularySize,
    bosToken: description.bos_token ?? null,
    eosToken: description.eos_token ?? null,
    padToken: description.pad_token ?? null,
    unkToken: description.unk_token ?? null,
    addBosToken: bosId !== null && prefixIds.includes(bosId),
    chatTemplate: typeof description.chat_template === 'string' ? description.chat_template : null,
  };
}

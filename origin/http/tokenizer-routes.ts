import type { ServerResponse } from 'node:http';
import { ApiError } from '@continuo/shared/errors.ts';
import {
  type DetokenizeRequest,
  detokenizeRequest,
  type TokenizeRequest,
  type TokenizerInfo,
  tokenizeRequest,
} from '@continuo/shared/tokenization.ts';
import type { HostedModel } from '../request/hosted-model.ts';
import { markedText } from '../request/prompt.ts';
import { parseBody } from './body.ts';
import { closeSignal, type ReceivedRequest, type ServerContext, sendJson, unlessAborted } from './route.ts';

/** Maximum tokens of a request, in contexts of the model. */
const MAX_CONTEXTS = 4;

/** Maximum characters of one /tokenize request. */
const MAX_TEXT = 2 ** 20;

const maxTokensOf = ({ contextLength }: HostedModel): number => MAX_CONTEXTS * contextLength;

const expected = (limit: number): string =>
  `Expected at most ${limit}, ${MAX_CONTEXTS} times the context of this model.`;

/** POST /tokenize: encodes a text as in a prompt. */
export async function handleTokenize(
  { body, response }: ReceivedRequest,
  { service }: ServerContext,
): Promise<void> {
  const request = parseBody(body, tokenizeRequest);
  const signal = closeSignal(response);
  const result = await service.hold(request.model, ({ model }) =>
    unlessAborted(tokenized(request, model, signal), signal),
  );
  if (result !== null) send(response, result);
}

async function tokenized(
  { tenantId, weight, prompt, addSpecialTokens, parseSpecial, ...wanted }: TokenizeRequest,
  model: HostedModel,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const maxTokens = maxTokensOf(model);
  const maxText = Math.min(MAX_TEXT, maxTokens * model.tokenizer.longestSpan);
  if (prompt.length > maxText) {
    const message = `Invalid 'prompt': string too long. Expected at most ${maxText} characters.`;
    throw new ApiError('string_above_max_length', message, { param: 'prompt' });
  }
  const options = { addSpecialTokens, parseSpecial };
  const text = markedText(prompt, parseSpecial, model);
  const job = { kind: 'tokenize', text, options, maxTokens, ...wanted } as const;
  const reply = await model.tokenizerThreads.run(job, { tenantId, weight, signal });
  if (typeof reply !== 'number') return reply;
  const message = `Invalid 'prompt': ${reply} tokens. ${expected(maxTokens)}`;
  throw new ApiError('string_above_max_length', message, { param: 'prompt' });
}

/** POST /detokenize: writes special tokens as their literal text. */
export async function handleDetokenize(
  { body, response }: ReceivedRequest,
  { service }: ServerContext,
): Promise<void> {
  const request = parseBody(body, detokenizeRequest);
  const signal = closeSignal(response);
  const result = await service.hold(request.model, ({ model }) =>
    unlessAborted(detokenized(request, model, signal), signal),
  );
  if (result !== null) send(response, result);
}

async function detokenized(
  { tenantId, weight, tokens }: DetokenizeRequest,
  model: HostedModel,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const maxTokens = maxTokensOf(model);
  if (tokens.length > maxTokens) {
    const message = `Invalid 'tokens': ${tokens.length} tokens. ${expected(maxTokens)}`;
    throw new ApiError('array_above_max_length', message, { param: 'tokens' });
  }
  const outside = tokens.findIndex((id) => id >= model.vocabularySize);
  if (outside >= 0) {
    throw new ApiError(
      'invalid_value',
      `Invalid 'tokens[${outside}]': the token id is outside the vocabulary of this model (0 to ${model.vocabularySize - 1}).`,
      { param: `tokens[${outside}]` },
    );
  }
  return model.tokenizerThreads.run({ kind: 'detokenize', tokens }, { tenantId, weight, signal });
}

/** Sends JSON that a tokenizer thread has written. */
function send(response: ServerResponse, json: Uint8Array): void {
  response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(json);
}

/** GET /tokenizer_info?model=… */
export async function handleTokenizerInfo(
  { query, response }: ReceivedRequest,
  { service }: ServerContext,
): Promise<void> {
  const name = query.get('model') ?? 'default';
  sendJson(response, 200, await service.hold(name, ({ model }) => tokenizerInfoOf(model)));
}

function tokenizerInfoOf(model: HostedModel): TokenizerInfo {
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

import { begin } from '@continuo/limits/hold.ts';
import { NO_USAGE } from '@continuo/limits/usage/usage-record.ts';
import { bytesOfUnits } from '@continuo/shared/binary-text.ts';
import {
  publicDetokenizeResponse,
  publicTokenizeResponse,
  publicTokenizerInfo,
} from '@continuo/shared/completion-response.ts';
import { ApiError, toApiError } from '@continuo/shared/errors.ts';
import type { OriginModel } from '@continuo/shared/origin-model.ts';
import type { Principal } from '@continuo/shared/tenant.ts';
import {
  documentedTokenizeRequest,
  nativeTokenizeRequest,
  publicDetokenizeRequest,
  publicTokenizeRequest,
  type TokenizeRequest,
  type TokenizeResult,
} from '@continuo/shared/tokenization.ts';
import type * as z from 'zod';
import { chooseDialect } from './dialects/dialect.ts';
import { parseRequest, unknownFields } from './dialects/parse-request.ts';
import { priceOf } from './generation/model-price.ts';
import { longestList, resolveModel } from './generation/resolve-model.ts';
import { BODY_HEADERS } from './http/headers.ts';
import { readJsonObject } from './http/request-body.ts';
import type { RequestContext } from './http/request-context.ts';
import { modelQuery } from './models.ts';
import { type Operation, type OperationInput, operation } from './operations/operation.ts';
import { TOKENIZER } from './operations/operation-errors.ts';
import type { TokenizerService } from './upstreams/upstream.ts';

interface TokenizerTarget {
  readonly principal: Principal;
  readonly model: OriginModel;
  readonly tokenizer: TokenizerService;
}

type JsonBody = Readonly<Record<string, unknown>>;

/** Reads the body with `read`, and finds the tokenizer of the model it names. */
async function target(
  { request, principal }: Pick<OperationInput, 'request' | 'principal'>,
  context: RequestContext,
  read: () => JsonBody | Promise<JsonBody>,
): Promise<[JsonBody, TokenizerTarget]> {
  context.reply.dialect = chooseDialect(request, principal.tenant);
  const body = await read();
  const model = await resolveModel(body.model || 'default', principal, context, request.signal);
  const catalogue = await context.catalogue;
  const { tokenizer } = catalogue.upstreamFor(model, { tenantId: principal.tenant.id, prompt: null });
  if (tokenizer !== null) return [body, { principal, model, tokenizer }];
  const message = `The server of the model '${model.id}' has no tokenizer endpoint. Use a model of another upstream.`;
  throw new ApiError('unsupported_endpoint', message, { param: 'model' });
}

const readBody = (request: Request, context: RequestContext): Promise<JsonBody> =>
  readJsonObject(request, context, () => longestList(context, request.signal));

/** UTF-8 bytes of a text, or token ids, that cost as much as one token. */
const SIZE_PER_TOKEN = 1_000;

/**
 * Reserves one request and its tokens, runs it and settles. A request that fails costs no tokens.
 * @param size bytes of text or number of token ids
 * @throws ApiError 429, or what `work` throws
 */
async function metered<T>(
  { principal, model }: TokenizerTarget,
  size: number,
  { signal }: Request,
  context: RequestContext,
  work: () => Promise<T>,
): Promise<T> {
  const tokens = Math.ceil(size / SIZE_PER_TOKEN);
  const price = await priceOf(model, 'default', context);
  const cost = { tokens, most: tokens, prompt: tokens, model: model.id, price };
  const hold = await begin(principal, cost, context);
  const nothing = { finishReasons: [], upstream: null, firstTokenAt: null };
  try {
    const result = await work();
    const usage = { ...NO_USAGE, promptTokens: tokens };
    hold.end({ ...nothing, status: 'completed', usage, errorCode: null });
    return result;
  } catch (thrown) {
    const status = signal.aborted ? 'cancelled' : 'failed';
    const errorCode = signal.aborted ? null : toApiError(thrown).code;
    hold.end({ ...nothing, status, usage: NO_USAGE, errorCode });
    throw thrown;
  }
}

/** What is asked of the tokenizer, and how its result is returned. */
interface Reading {
  readonly wanted: Pick<
    TokenizeRequest,
    'prompt' | 'addSpecialTokens' | 'parseSpecial' | 'withStrings' | 'withBytes'
  >;
  readonly show: (result: TokenizeResult, model: OriginModel) => object;
}

function readTokenize(body: JsonBody): Reading {
  const { prompt, add_special_tokens, parse_special, return_token_strs } = parseRequest(
    publicTokenizeRequest,
    body,
  );
  const withStrings = return_token_strs === true;
  return {
    wanted: {
      prompt,
      addSpecialTokens: add_special_tokens ?? true,
      parseSpecial: parse_special ?? true,
      withStrings,
      withBytes: false,
    },
    show: ({ tokens, tokenStrings }, { contextLength }) => ({
      count: tokens.length,
      max_model_len: contextLength,
      tokens,
      ...(withStrings ? { token_strs: tokenStrings } : {}),
    }),
  };
}

function readNativeTokenize(body: JsonBody): Reading {
  const { content, add_special, parse_special, with_pieces } = parseRequest(nativeTokenizeRequest, body);
  const withBytes = with_pieces === true;
  return {
    wanted: {
      prompt: content,
      addSpecialTokens: add_special ?? false,
      parseSpecial: parse_special ?? true,
      withStrings: false,
      withBytes,
    },
    show: ({ tokens, tokenBytes = [] }) => ({
      tokens: withBytes
        ? tokens.map((id, index) => ({ id, piece: pieceOf(tokenBytes[index] ?? '') }))
        : tokens,
    }),
  };
}

/** Returns the text of a token, or its bytes if they are not whole characters. */
function pieceOf(bytes: string): string | number[] {
  const units = bytesOfUnits(bytes);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(units);
  } catch {
    return Array.from(units);
  }
}

const isNative = ({ reply }: RequestContext): boolean => reply.dialect.name === 'llamacpp';

/**
 * {prompt, add_special_tokens?} → {tokens, count, max_model_len, token_strs?}. With `content`, or without
 * `prompt` in its dialect, as llama.cpp: {content, add_special?, with_pieces?} → {tokens}.
 */
async function tokenize(input: OperationInput, context: RequestContext) {
  const { request } = input;
  const [body, subject] = await target(input, context, () => readBody(request, context));
  const has = (name: string): boolean => (body[name] ?? null) !== null;
  const native = has('content') || (isNative(context) && !has('prompt'));
  context.reply.ignoredFields = unknownFields(body, documentedTokenizeRequest);
  const { wanted, show } = native ? readNativeTokenize(body) : readTokenize(body);
  const { principal, model, tokenizer } = subject;
  const { id: tenantId, weight } = principal.tenant;
  const wire = { model: model.id, tenantId, weight, ...wanted };
  const size = new TextEncoder().encode(wanted.prompt).length;
  const result = await metered(subject, size, request, context, () =>
    tokenizer.tokenize(wire, request.signal),
  );
  return show(result, model);
}

/** {tokens} → {prompt}, or {content} in the dialect of llama.cpp. */
async function detokenize(input: OperationInput, context: RequestContext) {
  const { request } = input;
  const [body, subject] = await target(input, context, () => readBody(request, context));
  const { tokens } = parseRequest(publicDetokenizeRequest, body);
  context.reply.ignoredFields = unknownFields(body, publicDetokenizeRequest);
  const { principal, model, tokenizer } = subject;
  const { id: tenantId, weight } = principal.tenant;
  const wire = { model: model.id, tenantId, weight, tokens };
  const { text } = await metered(subject, tokens.length, request, context, () =>
    tokenizer.detokenize(wire, request.signal),
  );
  return isNative(context) ? { content: text } : { prompt: text };
}

/** Describes the tokenizer to clients that run their own copy. */
async function showTokenizer(
  input: OperationInput<undefined, z.infer<typeof modelQuery>>,
  context: RequestContext,
) {
  const [, { model, tokenizer }] = await target(input, context, () => input.query);
  const info = await tokenizer.info(model.id, input.request.signal);
  return {
    model: model.id,
    tokenizer_class: 'PreTrainedTokenizerFast',
    model_max_length: info.contextLength,
    vocab_size: info.vocabularySize,
    bos_token: info.bosToken,
    eos_token: info.eosToken,
    pad_token: info.padToken,
    unk_token: info.unkToken,
    add_bos_token: info.addBosToken,
    chat_template: info.chatTemplate,
  };
}

export const TOKENIZER_OPERATIONS: readonly Operation[] = [
  operation('POST', '/tokenize', {
    id: 'tokenize',
    summary: 'Convert a text to token ids.',
    scope: 'completions',
    ownBody: documentedTokenizeRequest,
    response: publicTokenizeResponse,
    responseHeaders: BODY_HEADERS,
    errors: [...TOKENIZER, 'empty_string', 'string_above_max_length'],
    isLimited: true,
    run: tokenize,
  }),
  operation('POST', '/detokenize', {
    id: 'detokenize',
    summary: 'Convert token ids to a text.',
    scope: 'completions',
    ownBody: publicDetokenizeRequest,
    response: publicDetokenizeResponse,
    responseHeaders: BODY_HEADERS,
    errors: [
      ...TOKENIZER,
      'empty_string',
      'array_above_max_length',
      'integer_above_max_value',
      'integer_below_min_value',
    ],
    isLimited: true,
    run: detokenize,
  }),
  operation('GET', '/tokenizer_info', {
    id: 'tokenizerInfo',
    summary: "Describe the model's tokenizer.",
    scope: 'completions',
    query: modelQuery,
    response: publicTokenizerInfo,
    errors: TOKENIZER,
    run: showTokenizer,
  }),
];

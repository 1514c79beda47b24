import { endUserHash } from '@continuo/limits/end-user.ts';
import { begin } from '@continuo/limits/hold.ts';
import { completionRequest, documentedCompletionRequest } from '@continuo/shared/completion.ts';
import { completionChunk, completionResponse } from '@continuo/shared/completion-response.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { nativeResponse, nativeResult } from '@continuo/shared/native-response.ts';
import type { OriginModel } from '@continuo/shared/origin-model.ts';
import type * as z from 'zod';
import { chooseDialect, DIALECTS, type Dialect } from './dialects/dialect.ts';
import { infillRequest, nativeRequest, parseInfill, parseNative } from './dialects/native-request.ts';
import { unknownFields } from './dialects/parse-request.ts';
import type { ParsedCompletion } from './dialects/parsed-completion.ts';
import { parseCompletion, type RequestBounds } from './dialects/request.ts';
import { NativeFormat } from './generation/format/native-format.ts';
import type { Generation } from './generation/generation.ts';
import { startGeneration } from './generation/generation-start.ts';
import { priceOf } from './generation/model-price.ts';
import { plainResponse } from './generation/plain-response.ts';
import { streamResponse } from './generation/relay.ts';
import { boundsOf, costOf } from './generation/request-cost.ts';
import { checkCapabilities, DEFAULT_NAME, longestList, resolveModel } from './generation/resolve-model.ts';
import {
  COMPLETION_HEADERS,
  IDEMPOTENCY_HEADER,
  LAST_EVENT_HEADER,
  RESUMABLE_HEADER,
} from './http/headers.ts';
import { readJsonObject } from './http/request-body.ts';
import type { RequestContext } from './http/request-context.ts';
import { type Operation, type OperationInput, operation } from './operations/operation.ts';
import { COMPLETION } from './operations/operation-errors.ts';
import type { ServiceTier } from './prices/price-list.ts';
import { resumeStream } from './replay/resumable.ts';

/** What a body is read with. */
interface Reading {
  readonly dialect: Dialect;
  readonly bounds: RequestBounds;
  readonly model: OriginModel;
}

/** A parsed body, and how its generation becomes a response. */
export interface ReadBody {
  readonly parsed: ParsedCompletion;
  /** The schema of the body. */
  readonly schema: z.ZodObject;
  readonly respond: (generation: Generation, context: RequestContext) => Promise<Response>;
}

function complete(input: OperationInput, context: RequestContext): Promise<Response> {
  return generate(input, context, (body, { dialect, bounds, model }) => {
    const parsed = parseCompletion(body, dialect, bounds, model.defaults);
    return {
      parsed,
      schema: completionRequest,
      respond: parsed.response.stream ? streamResponse : plainResponse,
    };
  });
}

function completeNative(
  input: OperationInput,
  context: RequestContext,
  parse: typeof parseNative,
  schema: z.ZodObject,
): Promise<Response> {
  const read = (body: JsonBody, { bounds, model }: Reading): ReadBody => {
    const { parsed, options } = parse(body, bounds, model.defaults);
    const format = () => new NativeFormat(parsed, model, options);
    const respond: ReadBody['respond'] = parsed.response.stream
      ? (generation, to) => streamResponse(generation, to, { writerOf: format, end: '' })
      : (generation, to) => plainResponse(generation, to, format);
    return { parsed, schema, respond };
  };
  return generate(input, context, read, () => DIALECTS.llamacpp);
}

/**
 * Serves one generation: parse → begin → generate → relay.
 * @param read parses the body. @throws ApiError 400 for the first invalid field
 * @param dialectOf chooses the dialect; an address of another API has its own
 */
export async function generate(
  { request, principal }: OperationInput,
  context: RequestContext,
  read: (body: JsonBody, reading: Reading) => ReadBody,
  dialectOf = chooseDialect,
): Promise<Response> {
  refuseResumable(request);
  const dialect = dialectOf(request, principal.tenant);
  context.reply.dialect = dialect;
  const body = withModel(
    await readJsonObject(request, context, () => longestList(context, request.signal)),
    dialect,
  );
  const model = await resolveModel(body.model, principal, context, request.signal);
  const { parsed, schema, respond } = read(body, {
    dialect,
    bounds: boundsOf(principal, context.settings),
    model,
  });
  context.reply.ignoredFields = unknownFields(body, schema);
  refuseKeyForStream(request, parsed);
  context.caller.endUser = parsed.endUser ? await endUserHash(principal.tenant.id, parsed.endUser) : null;
  checkCapabilities(parsed, model);
  const price = await priceOf(model, tierOf(parsed, context), context);
  const catalogue = await context.catalogue;
  const hold = await begin(principal, { ...costOf(parsed, model), price }, context);
  try {
    const generation = startGeneration({ request, context, principal, model, parsed, hold, catalogue });
    return await respond(generation, context);
  } catch (thrown) {
    throw finalAfterTimeLimit(thrown, context);
  }
}

function tierOf({ generation }: ParsedCompletion, { batchKey }: RequestContext): ServiceTier {
  if (batchKey !== null) return 'batch';
  return generation.flex ? 'flex' : 'default';
}

type JsonBody = Awaited<ReturnType<typeof readJsonObject>>;

/** Adds the default model if the dialect allows requests without one. Editors send an empty name for none. */
const withModel = (body: JsonBody, { modelOptional }: Dialect): JsonBody =>
  modelOptional && ['', null, undefined].includes(body.model as null)
    ? { ...body, model: DEFAULT_NAME }
    : body;

/** A request that used its whole time limit would use it again, so clients must not repeat it. */
function finalAfterTimeLimit(thrown: unknown, { settings, timings }: RequestContext): unknown {
  if (!(thrown instanceof ApiError) || thrown.code !== 'upstream_timeout') return thrown;
  if (timings.elapsed < settings.REQUEST_TIMEOUT_MS) return thrown;
  const headers = { ...thrown.headers, 'x-should-retry': 'false' };
  return new ApiError(thrown.code, thrown.message, { param: thrown.param, headers });
}

/** Completions have lost this header here. The streams of other APIs have no ids and another end. */
function refuseResumable(request: Request): void {
  if (!request.headers.has(RESUMABLE_HEADER)) return;
  const message = `Invalid header '${RESUMABLE_HEADER}': only a stream of '/v1/completions' can be resumed. Remove the header.`;
  throw new ApiError('unsupported_parameter', message, { param: RESUMABLE_HEADER });
}

/** A stream is not stored, so a repeated request would run again. */
function refuseKeyForStream(request: Request, { response }: ParsedCompletion): void {
  if (!response.stream || !request.headers.has(IDEMPOTENCY_HEADER)) return;
  const message = `Invalid header '${IDEMPOTENCY_HEADER}': it cannot be used with 'stream'. Remove the header. At '/v1/completions', '${RESUMABLE_HEADER}: true' lets a client continue a broken stream.`;
  throw new ApiError('conflicting_parameters', message, { param: IDEMPOTENCY_HEADER });
}

/** What operations that generate or score have in common. */
export const GENERATION = {
  scope: 'completions',
  errors: COMPLETION,
  responseHeaders: COMPLETION_HEADERS,
  isLimited: true,
  isRepeatable: true,
} as const;

const completion = (path: string, id: string, summary: string): Operation =>
  operation('POST', path, {
    ...GENERATION,
    id,
    summary,
    ownBody: documentedCompletionRequest,
    response: completionResponse,
    events: completionChunk,
    isResumable: true,
    run: complete,
  });

export const COMPLETION_OPERATIONS: readonly Operation[] = [
  completion('/v1/completions', 'createCompletion', 'Complete a text.'),
  completion('/api/v1/completions', 'createCompletionAlias', 'The same as POST /v1/completions.'),
  completion('/v1/fim/completions', 'createInfill', 'Fill in a text; the same as POST /v1/completions.'),
  operation('GET', '/v1/completions/{id}/stream', {
    id: 'resumeCompletion',
    summary: 'Resume a stream.',
    scope: 'completions',
    requestHeaders: {
      [LAST_EVENT_HEADER]:
        'The id of the last received event. If absent, the stream starts from the beginning.',
    },
    events: completionChunk,
    isLimited: true,
    run: ({ request, id, principal }, context) => resumeStream(request, context, principal.tenant.id, id),
  }),
  // llama.cpp's own API. Its alias /completions is the address of OpenAI clients with a wrong base URL.
  operation('POST', '/completion', {
    ...GENERATION,
    id: 'createNativeCompletion',
    summary: "Complete a text; request and response as in llama.cpp's own API.",
    ownBody: nativeRequest,
    response: nativeResponse,
    events: nativeResult,
    run: (input, context) => completeNative(input, context, parseNative, nativeRequest),
  }),
  operation('POST', '/infill', {
    ...GENERATION,
    id: 'createNativeInfill',
    summary: "Fill in a text; request and response as in llama.cpp's own API.",
    ownBody: infillRequest,
    response: nativeResponse,
    events: nativeResult,
    run: (input, context) => completeNative(input, context, parseInfill, infillRequest),
  }),
];

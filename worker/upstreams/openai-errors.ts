import { ApiError, ERROR_TABLE, type ErrorCode, isErrorCode } from '@continuo/shared/errors.ts';
import * as z from 'zod';
import { readJsonBody } from './fetch-upstream.ts';
import { loading } from './upstream-errors.ts';

/** An error of an OpenAI-compatible server. A member of the wrong type does not invalidate the others. */
const fault = z.object({
  message: z.string().catch(''),
  type: z.string().nullable().catch(null),
  param: z.string().nullable().catch(null),
  code: z.union([z.string(), z.number()]).nullable().catch(null),
});
export type ServerFault = z.infer<typeof fault>;

/**
 * Returns the error in a body or an event: in OpenAI's envelope, as a text (LM Studio, TGI), or without an
 * envelope (SGLang, older vLLM). Null if there is none. Runs per event, so a schema does not wrap it.
 */
export function faultOf(value: unknown): ServerFault | null {
  if (typeof value !== 'object' || value === null) return null;
  const { error, object, message, choices } = value as Readonly<Record<string, unknown>>;
  if (typeof error === 'string' && error !== '') return fault.parse({ message: error });
  if (typeof error === 'object' && error !== null) return fault.parse(error);
  const bare = object === 'error' || (typeof message === 'string' && choices === undefined);
  return bare ? fault.parse(value) : null;
}

/** True if the server reports an invalid request, as OpenAI or as vLLM does. */
export const blamesRequest = ({ type, code }: ServerFault): boolean =>
  type === 'invalid_request_error' || type === 'BadRequestError' || code === 400 || code === 422;

/** llama.cpp names this error by a type, vLLM only by its message. */
const isTooLong = ({ type, message }: ServerFault): boolean =>
  type === 'exceed_context_size_error' || /maximum context length|available context size/i.test(message);

/** Maps a server's error to an error code of this API. */
export function codeOfFault(fault: ServerFault): ErrorCode {
  const { code } = fault;
  if (typeof code === 'string' && isErrorCode(code) && ERROR_TABLE[code].status === 400) return code;
  return isTooLong(fault) ? 'context_length_exceeded' : 'invalid_value';
}

/** The message says what to do, because the client cannot know which servers have this endpoint. */
export const noRawCompletions = (model: string): ApiError =>
  new ApiError(
    'unsupported_endpoint',
    `The server behind the model '${model}' does not serve raw completions. ` +
      'Choose a model served by vLLM, Ollama, LM Studio or llama.cpp, or ask this one through chat completions.',
    { param: 'model' },
  );

/** Returns `retry-after` in whole seconds; servers also send fractions and dates. */
function secondsToWait(response: Response, now: number, otherwise = 1): number {
  const header = response.headers.get('retry-after');
  if (header === null) return otherwise;
  const seconds = Number.isNaN(Number(header)) ? (Date.parse(header) - now) / 1000 : Number(header);
  return Number.isFinite(seconds) ? Math.max(1, Math.ceil(seconds)) : otherwise;
}

/** FastAPI's list of invalid fields, as vLLM's and SGLang's 422. */
const invalidFields = z.object({
  detail: z.union([
    z.string(),
    z.array(z.object({ loc: z.array(z.union([z.string(), z.number()])), msg: z.string() })),
  ]),
});

/** Returns the fault of a 422, whose body names the fields. */
function faultOfFields(value: unknown): ServerFault | null {
  const parsed = invalidFields.safeParse(value);
  if (!parsed.success) return null;
  const { detail } = parsed.data;
  if (typeof detail === 'string') return fault.parse({ message: detail });
  const named = detail.map(({ loc, msg }) => [loc.filter((part) => part !== 'body').join('.'), msg] as const);
  return fault.parse({
    message: named.map((pair) => pair.join(': ')).join('; '),
    param: named[0]?.[0] ?? null,
  });
}

/** A server's own code of an invalid request, as OpenAI's codes look. */
const OWN_CODE = /^[a-z][a-z0-9_.-]{0,63}$/;

/** Returns the error of a request that the server has rejected, also if the reason is unknown. */
function rejected(fault: ServerFault | null): ApiError {
  if (fault === null) return new ApiError('invalid_value', 'The model server rejected the request.');
  const { message, param } = fault;
  const code = codeOfFault(fault);
  const ownCode = typeof fault.code === 'string' && OWN_CODE.test(fault.code) ? fault.code : undefined;
  const said = message === '' ? 'The model server rejected the request.' : message.slice(0, 1000);
  return new ApiError(code, said, {
    param: code === 'context_length_exceeded' ? 'prompt' : param,
    ...(code === 'invalid_value' && ownCode !== undefined && { shownCode: ownCode }),
  });
}

interface ModelNames {
  readonly model: string;
  /** The server's own name, which the caller never sees. */
  readonly upstreamModel: string;
}

interface RefusedResponse {
  /** The client's error. */
  readonly error: ApiError;
  readonly fault: ServerFault | null;
}

/** Reads a response that is not 200. `now` = Unix milliseconds. */
export async function errorOfOpenAiResponse(
  response: Response,
  names: ModelNames,
  now: number,
): Promise<RefusedResponse> {
  const body = await readJsonBody(response);
  const fault = faultOf(body) ?? faultOfFields(body);
  const shown = fault && { ...fault, message: withPublicName(fault.message, names) };
  return { error: errorOf(response, shown, names, now), fault };
}

/**
 * Replaces the server's own name of the model where it stands alone: `m` is neither in `from` nor in `m-2` or
 * `m.gguf`.
 */
const withPublicName = (message: string, { model, upstreamModel }: ModelNames): string =>
  message.replaceAll(
    new RegExp(`(?<![\\w/-]|\\w\\.)${escaped(upstreamModel)}(?![\\w/-]|\\.\\w)`, 'gu'),
    () => model,
  );

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&');

function errorOf(
  response: Response,
  fault: ServerFault | null,
  { model }: ModelNames,
  now: number,
): ApiError {
  const { status } = response;
  const waiting = (code: ErrorCode, message: string): ApiError =>
    new ApiError(code, message, { headers: { 'retry-after': String(secondsToWait(response, now)) } });
  // Servers use 404 for unknown paths and for unknown models; only the message for a model names it.
  const noPath = status === 404 && !/model/i.test(fault?.message ?? '');
  if (status === 405 || status === 415 || status === 501 || noPath) return noRawCompletions(model);
  if (status === 404) return modelMissing(model);
  if (status === 503 && /loading/i.test(fault?.message ?? ''))
    return loading(secondsToWait(response, now, 5));
  if (status === 429 || status === 503) {
    return waiting('server_is_overloaded', 'The model server is overloaded.');
  }
  if (status === 504) return waiting('upstream_timeout', 'The model server did not answer in time.');
  if (status === 400 || status === 413 || status === 422) return rejected(fault);
  // 401 and 403 concern the operator's key for the server: not the client's fault.
  return waiting('upstream_error', 'The model server could not serve this request.');
}

/** Some servers, such as Ollama, answer 404 for a model that was removed or not pulled yet. */
const modelMissing = (model: string): ApiError =>
  new ApiError('model_not_found', `The model server does not have the model '${model}'.`, { param: 'model' });

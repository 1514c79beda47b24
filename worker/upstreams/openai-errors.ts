import * as z from 'zod';
import { ApiError, ERROR_TABLE, type ErrorCode, isErrorCode } from '../../shared/errors.ts';
import { readErrorBody } from './error-body.ts';
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
 * Returns the error in a body or an event: in OpenAI's envelope, as a text (LM Studio, TGI), or without an envelope
 * (SGLang, older vLLM). Null if there is none. Runs per event, so a schema does not wrap it.
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
export const noRawCompletions = (model: string, server: string): ApiError =>
  new ApiError(
    'unsupported_endpoint',
    `The server '${server}' behind the model '${model}' does not serve raw completions. ` +
      'Choose a model served by vLLM, Ollama, LM Studio or llama.cpp, or ask this one through chat completions.',
    { param: 'model' },
  );

/** Returns `retry-after` in whole seconds; servers also send fractions and dates. */
function secondsToWait(response: Response, now: number): number {
  const header = response.headers.get('retry-after') ?? '';
  const seconds = Number.isNaN(Number(header)) ? (Date.parse(header) - now) / 1000 : Number(header);
  return Number.isFinite(seconds) ? Math.max(1, Math.ceil(seconds)) : 1;
}

/** Returns the error of a request that the server has rejected, also if the reason is unknown. */
function rejected(fault: ServerFault | null): ApiError {
  const { message, param = null } = fault ?? { message: '' };
  const code = fault === null ? 'invalid_value' : codeOfFault(fault);
  const said = message === '' ? 'The model server rejected the request.' : message.slice(0, 1000);
  return new ApiError(code, said, { param: code === 'context_length_exceeded' ? 'prompt' : param });
}

/** Returns the client's error for an answer that is not 200. `now` = Unix milliseconds. */
export async function errorOfOpenAiAnswer(
  response: Response,
  model: string,
  server: string,
  now: number,
): Promise<ApiError> {
  const { status } = response;
  const waiting = (code: ErrorCode, message: string): ApiError =>
    new ApiError(code, message, { headers: { 'retry-after': String(secondsToWait(response, now)) } });
  const fault = faultOf(await readErrorBody(response));
  // Servers use 404 for unknown paths and for unknown models; only the message for a model names it.
  const noPath = status === 404 && !/model/i.test(fault?.message ?? '');
  if (status === 405 || status === 415 || status === 501 || noPath) return noRawCompletions(model, server);
  if (status === 503 && /loading/i.test(fault?.message ?? '')) return loading();
  if (status === 429 || status === 503) {
    return waiting('server_is_overloaded', 'The model server is overloaded.');
  }
  if (status === 504) return waiting('upstream_timeout', 'The model server did not answer in time.');
  if (status === 400 || status === 413 || status === 422) return rejected(fault);
  // 401 and 403 concern the operator's key for the server, 404 the configured model name: not the client's fault.
  return waiting('upstream_error', 'The model server could not serve this request.');
}

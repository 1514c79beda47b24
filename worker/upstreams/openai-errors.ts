import { ApiError, type ErrorCode } from '../../shared/errors.ts';
import { errorBody } from './error-body.ts';
import { codeOf, type Fault, faultOf } from './openai-fault.ts';
import { loading } from './upstream-errors.ts';

/** Says what to do: the caller cannot know which servers have this endpoint. */
export const noRawCompletions = (model: string, server: string): ApiError =>
  new ApiError(
    'unsupported_endpoint',
    `The server '${server}' behind the model '${model}' does not serve raw completions. ` +
      'Choose a model served by vLLM, Ollama, LM Studio or llama.cpp, or ask this one through chat completions.',
    { param: 'model' },
  );

/** Whole seconds, as clients read them: servers also send fractions, and dates. */
function secondsToWait(response: Response, now: number): number {
  const header = response.headers.get('retry-after') ?? '';
  const seconds = Number.isNaN(Number(header)) ? (Date.parse(header) - now) / 1000 : Number(header);
  return Number.isFinite(seconds) ? Math.max(1, Math.ceil(seconds)) : 1;
}

/** The server finds the request wrong, whether or not it can be understood why. */
function refused(fault: Fault | null): ApiError {
  const { message, param = null } = fault ?? { message: '' };
  const code = fault === null ? 'invalid_value' : codeOf(fault);
  const said = message === '' ? 'The model server refused the request.' : message.slice(0, 1000);
  return new ApiError(code, said, { param: code === 'context_length_exceeded' ? 'prompt' : param });
}

/** What the caller should see of an answer that is not 200. `now` = Unix milliseconds. */
export async function errorOfOpenAiAnswer(
  response: Response,
  model: string,
  server: string,
  now: number,
): Promise<ApiError> {
  const { status } = response;
  const waiting = (code: ErrorCode, message: string): ApiError =>
    new ApiError(code, message, { headers: { 'retry-after': String(secondsToWait(response, now)) } });
  const fault = faultOf(await errorBody(response));
  // Servers use 404 for unknown paths and for unknown models; about the latter they speak of a model.
  const noPath = status === 404 && !/model/i.test(fault?.message ?? '');
  if (status === 405 || status === 415 || status === 501 || noPath) return noRawCompletions(model, server);
  if (status === 503 && /loading/i.test(fault?.message ?? '')) return loading();
  if (status === 429 || status === 503) {
    return waiting('server_is_overloaded', 'The model server is overloaded.');
  }
  if (status === 504) return waiting('upstream_timeout', 'The model server did not answer in time.');
  if (status === 400 || status === 413 || status === 422) return refused(fault);
  // 401 and 403 are about our key for that server, 404 about our name for its model: nothing the caller did.
  return waiting('upstream_error', 'The model server could not serve this request.');
}

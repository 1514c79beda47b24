import * as z from 'zod';
import { ApiError, type ErrorCode, isErrorCode } from '../../shared/errors.ts';

const envelope = z.object({
  error: z.object({
    message: z.string(),
    param: z.string().nullish(),
    code: z.union([z.string(), z.number()]).nullish(),
  }),
});

/** Says what to do: the caller cannot know which servers have this endpoint. */
export const noRawCompletions = (model: string, server: string): ApiError =>
  new ApiError(
    'unsupported_endpoint',
    `The server '${server}' behind the model '${model}' does not serve raw completions. ` +
      'Choose a model served by vLLM, Ollama, LM Studio or llama.cpp, or ask this one through chat completions.',
    { param: 'model' },
  );

const waiting = (code: ErrorCode, message: string, response: Response): ApiError =>
  new ApiError(code, message, { headers: { 'retry-after': response.headers.get('retry-after') ?? '1' } });

/** What the caller should see of an answer that is not 200. */
export async function errorOfOpenAiAnswer(
  response: Response,
  model: string,
  server: string,
): Promise<ApiError> {
  const { status } = response;
  const body = envelope.safeParse(await response.json().catch(() => null));
  const found = body.success ? body.data.error : null;
  if (status === 405 || status === 415 || status === 501 || (status === 404 && !found)) {
    return noRawCompletions(model, server);
  }
  if (status === 429 || status === 503) {
    return waiting('server_is_overloaded', 'The model server is overloaded.', response);
  }
  if (status === 504)
    return waiting('upstream_timeout', 'The model server did not answer in time.', response);
  if ((status === 400 || status === 413 || status === 422) && found) {
    const code = typeof found.code === 'string' && isErrorCode(found.code) ? found.code : 'invalid_value';
    return new ApiError(code, found.message.slice(0, 1000), { param: found.param ?? null });
  }
  // 401 and 403 are about our key for that server, 404 about our name for its model: nothing the caller did.
  return waiting('upstream_error', 'The model server could not serve this request.', response);
}

import * as z from 'zod';
import { ERROR_TABLE, type ErrorCode, isErrorCode } from '../../shared/errors.ts';

/** An error of an OpenAI-compatible server. A member of the wrong type does not invalidate the others. */
const fault = z.object({
  message: z.string().catch(''),
  type: z.string().nullable().catch(null),
  param: z.string().nullable().catch(null),
  code: z.union([z.string(), z.number()]).nullable().catch(null),
});
export type Fault = z.infer<typeof fault>;

/**
 * Returns the error in a body or an event: in OpenAI's envelope, as a text (LM Studio, TGI), or without an envelope
 * (SGLang, older vLLM). Null if there is none. Runs per event, so a schema does not wrap it.
 */
export function faultOf(value: unknown): Fault | null {
  if (typeof value !== 'object' || value === null) return null;
  const { error, object, message, choices } = value as Readonly<Record<string, unknown>>;
  if (typeof error === 'string' && error !== '') return fault.parse({ message: error });
  if (typeof error === 'object' && error !== null) return fault.parse(error);
  const bare = object === 'error' || (typeof message === 'string' && choices === undefined);
  return bare ? fault.parse(value) : null;
}

/** True if the server reports an invalid request, as OpenAI or as vLLM does. */
export const blamesRequest = ({ type, code }: Fault): boolean =>
  type === 'invalid_request_error' || type === 'BadRequestError' || code === 400 || code === 422;

/** llama.cpp names this error by a type, vLLM only by its message. */
const isTooLong = ({ type, message }: Fault): boolean =>
  type === 'exceed_context_size_error' || /maximum context length|available context size/i.test(message);

/** Maps a server's error to an error code of this API. */
export function codeOfFault(fault: Fault): ErrorCode {
  const { code } = fault;
  if (typeof code === 'string' && isErrorCode(code) && ERROR_TABLE[code].status === 400) return code;
  return isTooLong(fault) ? 'context_length_exceeded' : 'invalid_value';
}

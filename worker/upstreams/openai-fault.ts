import * as z from 'zod';
import { ERROR_TABLE, type ErrorCode, isErrorCode } from '../../shared/errors.ts';

/** What an OpenAI-compatible server finds wrong. One odd member must not hide the others. */
const fault = z.object({
  message: z.string().catch(''),
  type: z.string().nullable().catch(null),
  param: z.string().nullable().catch(null),
  code: z.union([z.string(), z.number()]).nullable().catch(null),
});
export type Fault = z.infer<typeof fault>;

/**
 * The fault in a body or in an event: in OpenAI's envelope, as a text there (LM Studio, TGI), or without any (SGLang,
 * older vLLM). Null when there is none. Runs per event, hence no schema around it.
 */
export function faultOf(value: unknown): Fault | null {
  if (typeof value !== 'object' || value === null) return null;
  const { error, object, message, choices } = value as Readonly<Record<string, unknown>>;
  if (typeof error === 'string' && error !== '') return fault.parse({ message: error });
  if (typeof error === 'object' && error !== null) return fault.parse(error);
  const bare = object === 'error' || (typeof message === 'string' && choices === undefined);
  return bare ? fault.parse(value) : null;
}

/** Whether the server says that the request was wrong, as OpenAI or as vLLM says it. */
export const blamesRequest = ({ type, code }: Fault): boolean =>
  type === 'invalid_request_error' || type === 'BadRequestError' || code === 400 || code === 422;

/** Servers number this error as any other, or name it in their own way: llama.cpp's has a type, vLLM's its words alone. */
const tooLong = ({ type, message }: Fault): boolean =>
  type === 'exceed_context_size_error' || /maximum context length|available context size/i.test(message);

/** Our name for what a server finds wrong with a request. */
export function codeOf(fault: Fault): ErrorCode {
  const { code } = fault;
  if (typeof code === 'string' && isErrorCode(code) && ERROR_TABLE[code].status === 400) return code;
  return tooLong(fault) ? 'context_length_exceeded' : 'invalid_value';
}

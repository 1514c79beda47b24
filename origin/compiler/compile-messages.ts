import type { Program } from '@continuo/grammar/program/program.ts';
import { bugTrace } from '@continuo/shared/error-details.ts';
import { ApiError, type ErrorCode, toApiError } from '@continuo/shared/errors.ts';

/** Message to a compile process, one at a time. */
export interface CompileJob {
  /** A WireConstraint or a PatternList as JSON. */
  readonly wire: string;
  readonly maxMs: number;
}

/** Message from a compile process: `ready` once, then one outcome per job. */
export type CompileResult = { readonly ready: true } | CompileOutcome;

export type CompileOutcome = { readonly program: Program } | { readonly error: CompileError };

interface CompileError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly param: string | null;
  /** Of a defect of the compiler; absent = the constraint is refused. */
  readonly trace?: ReturnType<typeof bugTrace>;
}

/** Message to the compile server. */
export interface CompileRequest {
  readonly id: number;
  /** A WireConstraint or a PatternList as JSON. */
  readonly wire: string;
  readonly tenantId: string;
}

/** Message from the compile server, one per request. */
export interface CompileResponse {
  readonly id: number;
  readonly outcome: CompileOutcome;
}

export function failureOutcome(thrown: unknown): CompileOutcome {
  const error = toApiError(thrown);
  const { code, message, param } = error;
  return { error: { code, message, param, ...(error !== thrown && { trace: bugTrace(thrown) }) } };
}

/** @throws ApiError of a failed compilation; a defect of the compiler as an Error with its name and frames */
export function programOf(outcome: CompileOutcome): Program {
  if ('program' in outcome) return outcome.program;
  const { code, message, param, trace } = outcome.error;
  if (trace !== undefined) throw defectOf(trace);
  throw new ApiError(code, message, { param });
}

/** The message stays in the process, because it may quote the constraint. */
function defectOf({ name, frames }: ReturnType<typeof bugTrace>): Error {
  const defect = new Error('The compiler has failed.');
  defect.name = name;
  defect.stack = [name, ...frames].join('\n');
  return defect;
}

export function shutdownError(): ApiError {
  return new ApiError('server_is_overloaded', 'The server is shutting down.');
}

/** Too many grammars wait, or one has had too little CPU time. */
export function busyError(): ApiError {
  return new ApiError(
    'server_is_overloaded',
    'The server is too busy to compile grammars. Retry the request.',
  );
}

/** The process died for a reason that may be unrelated to the grammar. */
export function processDiedError(): ApiError {
  return new ApiError(
    'upstream_error',
    'The process that compiles grammars stopped unexpectedly. Retry the request.',
  );
}

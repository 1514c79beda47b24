import { ApiError } from '../../shared/errors.ts';
import type { CompletionCall } from './completion-call.ts';

const CONSTRAINT_FAULTS: ReadonlySet<string> = new Set(['invalid_grammar', 'invalid_json_schema']);

/** The wire has one name for a constraint, and does not tell a prompt from a list of one: errors name what was sent. */
export function inCallersWords(
  error: ApiError,
  { constraintField, promptIsListed }: CompletionCall,
): ApiError {
  if (promptIsListed && error.param !== null && /^prompt\[\d+\]$/.test(error.param)) {
    const inList = (text: string) => text.replace('prompt[', 'prompt[0][');
    return new ApiError(error.code, inList(error.message), {
      param: inList(error.param),
      headers: error.headers,
    });
  }
  if (constraintField === null || !CONSTRAINT_FAULTS.has(error.code)) return error;
  const message = `Invalid '${constraintField}': ${error.message}`;
  return new ApiError(error.code, message, { param: constraintField, headers: error.headers });
}

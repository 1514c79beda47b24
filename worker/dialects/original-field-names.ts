import type { ApiError } from '@continuo/shared/errors.ts';
import type { CompletionCall } from './completion-call.ts';

/** What upstreams call a constraint that they cannot follow. */
const ANY_CONSTRAINT = 'structured_outputs';

const CONSTRAINT_ERRORS: ReadonlySet<string> = new Set(['invalid_grammar', 'invalid_json_schema']);

/**
 * Converts an error of the upstream to the request's field names. The wire has one field for all constraints, and does
 * not distinguish a prompt from a list of one prompt.
 */
export function withOriginalFieldNames(
  error: ApiError,
  { constraintField, promptIsListed, rename }: CompletionCall,
): ApiError {
  if (rename) return rename(error);
  if (promptIsListed && error.param !== null && /^prompt\[\d+\]$/.test(error.param)) {
    const inList = (text: string) => text.replace('prompt[', 'prompt[0][');
    return error.renamed(inList(error.param), inList(error.message));
  }
  if (constraintField !== null && error.code === 'unsupported_parameter' && error.param === ANY_CONSTRAINT) {
    return error.renamed(constraintField, error.message);
  }
  if (constraintField === null || !CONSTRAINT_ERRORS.has(error.code)) return error;
  // Another Continuo behind the edge has named its own field already.
  const reason = error.message.replace(/^Invalid '[^']*': /, '');
  return error.renamed(constraintField, `Invalid '${constraintField}': ${reason}`);
}

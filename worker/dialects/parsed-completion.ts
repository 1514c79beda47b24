import type { ApiError } from '@continuo/shared/errors.ts';
import type { GenerationRequest } from '@continuo/shared/generation.ts';

/** `rows` has the values, `row_ids` the ids of rows that leave tokens out. */
export type RowMember = 'rows' | 'row_ids';

/** The form of the response. */
export interface ResponseOptions {
  /** Put the prompt's text before the completion. */
  readonly echo: boolean;
  /** Echo only the last k prompt tokens; null = all. */
  readonly echoLast: number | null;
  /** Top logprobs per token; null = no `logprobs` object. */
  readonly logprobs: number | null;
  /** The logprobs of generated tokens are those of ids that the request lists. */
  readonly listedLogprobs: boolean;
  /** The members of `logprobs` with the rows of `logprobs_format`. */
  readonly rowMembers: readonly RowMember[];
  /** Name tokens `token_id:N`, because two ids may have the same text. */
  readonly tokensAsIds: boolean;
  readonly tokenIds: boolean;
  /** Top logprobs in `prompt_logprobs`; null = absent. */
  readonly promptLogprobs: number | null;
  readonly timings: boolean;
  /** Usage in a stream: none, a final chunk, also in every chunk, or on the last choice's last chunk. */
  readonly streamUsage: 'none' | 'final' | 'continuous' | 'last-choice';
  /** The model's name as in the request. */
  readonly model: string;
  readonly stream: boolean;
  /** Most tokens per event of a stream; null = no limit. */
  readonly tokensPerEvent: number | null;
  /** Number of choices per prompt in the response. */
  readonly n: number;
  /** Ranks the candidates by mean logprob and keeps the best n, if there are more. */
  readonly rank: boolean;
}

/** The part of a GenerationRequest that comes from the body. Caller, model and deadline are added later. */
export type GenerationFields = Omit<
  GenerationRequest,
  'version' | 'requestId' | 'account' | 'tenantId' | 'weight' | 'model' | 'deadlineMs'
>;

/** A parsed completion request. */
export interface ParsedCompletion {
  readonly response: ResponseOptions;
  readonly generation: GenerationFields;
  /** The field of the constraint, for the errors of its compilation. */
  readonly constraintField: string | null;
  /** Converts an error to the fields of a body that is not a completion's. */
  readonly rename?: (error: ApiError) => ApiError;
  /** The field `user`; null = absent. */
  readonly endUser: string | null;
  /** The only prompt is in a list, so error messages need two indices for its tokens. */
  readonly promptIsListed: boolean;
  /**
   * Fields that OpenAI-compatible upstreams get unchanged: unknown scalars and lists of scalars except
   * service fields, sampling fields, and the constraint.
   */
  readonly extra: Readonly<Record<string, unknown>>;
}

/** What upstreams call a constraint that they cannot follow. */
const ANY_CONSTRAINT = 'structured_outputs';

const CONSTRAINT_ERRORS: ReadonlySet<string> = new Set(['invalid_grammar', 'invalid_json_schema']);

/**
 * Converts an error of the upstream to the request's field names. The wire has one field for all constraints,
 * and does not distinguish a prompt from a list of one prompt.
 */
export function withOriginalFieldNames(
  error: ApiError,
  { constraintField, promptIsListed, rename }: ParsedCompletion,
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

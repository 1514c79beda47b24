import type { CompletionRequest } from '@continuo/shared/completion.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { either } from './aliases.ts';
import type { Resolved } from './cross-field.ts';
import type { Dialect } from './dialect.ts';
import type { ResponseOptions, RowMember } from './parsed-completion.ts';
import { aboveMaximum, conflicting } from './request-errors.ts';

/** Reads the fields that shape the response. */
export function responseOptions(
  request: CompletionRequest,
  resolved: Resolved,
  dialect: Dialect,
): ResponseOptions {
  return {
    model: request.model,
    stream: request.stream ?? false,
    // Front-ends show the alternatives of an event's first token beside the event's text.
    tokensPerEvent: request.stream_interval ?? (resolved.logprobs === null ? null : 1),
    n: resolved.n,
    rank: resolved.bestOf > resolved.n,
    echo: resolved.echo,
    echoLast: request.echo_last ?? null,
    logprobs: resolved.logprobs,
    listedLogprobs: (request.logprob_token_ids ?? []).length > 0,
    rowMembers: rowMembersOf(request.logprobs_format),
    tokensAsIds: request.return_tokens_as_token_ids ?? false,
    tokenIds: either(request, 'return_token_ids', 'return_tokens') ?? false,
    promptLogprobs: promptLogprobsOf(request, dialect),
    timings: request.timings_per_token ?? false,
    streamUsage: streamUsageOf(request, dialect),
  };
}

/** Returns the members of a response that have the rows of a request. */
export const rowMembersOf = (format: CompletionRequest['logprobs_format']): readonly RowMember[] =>
  !format ? [] : format.top_p ? ['rows', 'row_ids'] : ['rows'];

function streamUsageOf(request: CompletionRequest, dialect: Dialect): ResponseOptions['streamUsage'] {
  const options = request.stream_options;
  if (options?.include_usage) return options.continuous_usage_stats ? 'continuous' : 'final';
  return dialect.streamUsage === 'last-choice' && options?.include_usage !== false ? 'last-choice' : 'none';
}

type NamedValue = readonly [field: string, value: number];

function atMost([field, value]: NamedValue, maximum: number): number {
  if (value <= maximum) return value;
  throw aboveMaximum(field, maximum, value);
}

/**
 * Returns the number of alternatives per generated token; null = no logprobs. `logprobs: true` uses the
 * number in top_logprobs. `n_probs: 0` means no logprobs, but `logprobs: 0` means logprobs without
 * alternatives.
 * @throws ApiError 400 if two names disagree: `logprobs: false` beside a number above 0, or two numbers
 */
export function logprobsOf(request: CompletionRequest, dialect: Dialect): number | null {
  const { logprobs, top_logprobs: top, n_probs: probabilities } = request;
  if (logprobs === true && typeof top !== 'number') {
    const message = "Invalid type for 'logprobs': expected an integer, or true together with 'top_logprobs'.";
    throw new ApiError('invalid_type', message, { param: 'logprobs' });
  }
  const given: NamedValue[] = [];
  if (typeof logprobs === 'number') given.push(['logprobs', logprobs]);
  if (typeof top === 'number') given.push(['top_logprobs', top]);
  if (typeof probabilities === 'number' && probabilities > 0) given.push(['n_probs', probabilities]);
  const wanted = given.find(([, count]) => count > 0);
  if (logprobs === false && wanted) throw conflicting('logprobs', wanted[0]);
  const [first] = given;
  if (first === undefined || logprobs === false) return null;
  const second = given.find((named) => named[1] !== first[1]);
  if (second) throw conflicting(first[0], second[0]);
  return atMost(first, dialect.maxLogprobs);
}

/** Returns the number of alternatives per prompt token; null = no `prompt_logprobs`. */
function promptLogprobsOf(request: CompletionRequest, dialect: Dialect): number | null {
  const value = request.prompt_logprobs;
  return typeof value === 'number' ? atMost(['prompt_logprobs', value], dialect.maxLogprobs) : null;
}

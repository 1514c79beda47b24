import type { CompletionRequest } from '../../shared/completion.ts';
import { ApiError } from '../../shared/errors.ts';
import type { Dialect } from './dialect.ts';
import { aboveMaximum, conflicting } from './request-errors.ts';

type Named = readonly [field: string, value: number];

function withinCeiling([field, value]: Named, ceiling: number): number {
  if (value <= ceiling) return value;
  throw aboveMaximum(field, ceiling, value);
}

/**
 * How many alternatives per generated token, under any name; null = none asked.
 * `logprobs: true` leaves the number to top_logprobs. `n_probs: 0` is its sender's word for off, `logprobs: 0` is not.
 */
export function logprobsOf(request: CompletionRequest, dialect: Dialect): number | null {
  const { logprobs, top_logprobs: top, n_probs: probabilities } = request;
  if (logprobs === true && typeof top !== 'number') {
    const message = "Invalid type for 'logprobs': expected an integer, or true together with 'top_logprobs'.";
    throw new ApiError('invalid_type', message, { param: 'logprobs' });
  }
  const given: Named[] = [];
  if (typeof logprobs === 'number') given.push(['logprobs', logprobs]);
  if (typeof top === 'number') given.push(['top_logprobs', top]);
  if (typeof probabilities === 'number' && probabilities > 0) given.push(['n_probs', probabilities]);
  const [first] = given;
  if (first === undefined) return null;
  const other = given.find((named) => named[1] !== first[1]);
  if (other) throw conflicting(first[0], other[0]);
  return withinCeiling(first, dialect.logprobsCeiling);
}

/** Alternatives per prompt token for `prompt_logprobs`; null = not asked. */
export function promptLogprobsOf(request: CompletionRequest, dialect: Dialect): number | null {
  const value = request.prompt_logprobs;
  return typeof value === 'number'
    ? withinCeiling(['prompt_logprobs', value], dialect.logprobsCeiling)
    : null;
}

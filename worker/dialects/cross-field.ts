import type { CompletionRequest } from '@continuo/shared/completion.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import type { TokenLimit } from '@continuo/shared/sampling.ts';
import type { NamedConstraint } from './constraints.ts';
import type { ResponseOptions } from './parsed-completion.ts';

/** Values that the rules check in addition to the body. */
export interface Resolved extends Pick<ResponseOptions, 'n' | 'echo' | 'logprobs'> {
  readonly maxTokens: TokenLimit;
  readonly bestOf: number;
  readonly suffix: string | null;
  readonly constraint: NamedConstraint | null;
}

interface Rule {
  readonly param: string;
  readonly broken: (request: CompletionRequest, resolved: Resolved) => boolean;
  readonly message: string | ((request: CompletionRequest, resolved: Resolved) => string);
}

/** Combinations of fields that are invalid although each field is valid. */
const RULES: readonly Rule[] = [
  {
    param: 'best_of',
    broken: (_, { n, bestOf }) => bestOf < n,
    message: (_, { n, bestOf }) =>
      `Conflicting parameters: 'best_of' is ${bestOf}, and must be at least 'n', which is ${n}.`,
  },
  {
    param: 'best_of',
    broken: (request, { n, bestOf }) => request.stream === true && bestOf > n,
    message: "Conflicting parameters: 'best_of' above 'n' cannot be used with 'stream'.",
  },
  {
    param: 'stream_options',
    broken: (request) => request.stream !== true && (request.stream_options ?? null) !== null,
    message: "Conflicting parameters: 'stream_options' is only allowed when 'stream' is true.",
  },
  {
    param: 'min_tokens',
    broken: (request, { maxTokens }) => maxTokens !== 'end' && (request.min_tokens ?? 0) > maxTokens,
    message: (request, { maxTokens }) =>
      `Conflicting parameters: 'min_tokens' is ${request.min_tokens}, and must not exceed 'max_tokens', which is ${maxTokens}.`,
  },
  {
    param: 'prompt_logprobs',
    broken: (request) => request.stream === true && typeof request.prompt_logprobs === 'number',
    message: "Conflicting parameters: 'prompt_logprobs' cannot be used with 'stream'.",
  },
  {
    param: 'logprob_token_ids',
    broken: (request, { logprobs }) => (request.logprob_token_ids ?? []).length > 0 && logprobs === null,
    message: "Conflicting parameters: 'logprob_token_ids' needs 'logprobs'.",
  },
  {
    param: 'logprob_token_ids',
    broken: (request, { echo, maxTokens }) =>
      (request.logprob_token_ids ?? []).length > 0 && echo && maxTokens === 0,
    message:
      "Conflicting parameters: 'logprob_token_ids' is for generated tokens, and 'max_tokens' 0 generates none.",
  },
  {
    param: 'logprobs_format',
    broken: (request, { logprobs }) => (request.logprobs_format ?? null) !== null && logprobs === null,
    message: "Conflicting parameters: 'logprobs_format' needs 'logprobs'.",
  },
  {
    param: 'truncate_sequence',
    broken: (request) => request.truncate_sequence === true && (request.truncate_prompt_tokens ?? -1) !== -1,
    message:
      "Conflicting parameters: 'truncate_sequence' and 'truncate_prompt_tokens' set different lengths. Send one of them.",
  },
  {
    param: 'suffix',
    broken: (_, { suffix, constraint }) => suffix !== null && constraint !== null,
    message: "Conflicting parameters: 'suffix' cannot be used with a grammar or a schema.",
  },
  {
    param: 'prompt_logprobs',
    broken: (request, { suffix }) => suffix !== null && typeof request.prompt_logprobs === 'number',
    message: "Conflicting parameters: 'prompt_logprobs' cannot be used with 'suffix'.",
  },
  {
    param: 'images',
    broken: (request, { suffix, echo, logprobs }) =>
      (request.images ?? []).length > 0 &&
      (suffix !== null ||
        (echo && logprobs !== null) ||
        typeof request.echo_last === 'number' ||
        typeof request.prompt_logprobs === 'number'),
    message:
      "Conflicting parameters: 'images' cannot be used with 'suffix', with 'echo' and 'logprobs', 'echo_last' or 'prompt_logprobs'.",
  },
  // With a suffix, the prompt's tokens are those of the infill template, which do not match the text.
  {
    param: 'echo_last',
    broken: (request, { suffix }) => suffix !== null && typeof request.echo_last === 'number',
    message: "Conflicting parameters: 'echo_last' cannot be used with 'suffix'.",
  },
  {
    param: 'echo',
    broken: (_, { suffix, echo, logprobs }) => suffix !== null && echo && logprobs !== null,
    message: "Conflicting parameters: 'echo' with 'logprobs' cannot be used with 'suffix'.",
  },
];

/** @throws ApiError 400 conflicting_parameters for the first broken rule */
export function checkTogether(request: CompletionRequest, resolved: Resolved): void {
  const rule = RULES.find(({ broken }) => broken(request, resolved));
  if (rule === undefined) return;
  const { param, message } = rule;
  const text = typeof message === 'string' ? message : message(request, resolved);
  throw new ApiError('conflicting_parameters', text, { param });
}

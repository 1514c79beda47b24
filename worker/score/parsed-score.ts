import { logprobRowsOf } from '@continuo/shared/completion-output.ts';
import { NEUTRAL_SAMPLING } from '@continuo/shared/sampling.ts';
import { type ScoreRequest, scoreRequest } from '@continuo/shared/score.ts';
import { parseRequest } from '../dialects/parse-request.ts';
import type { GenerationFields, ParsedCompletion, ResponseOptions } from '../dialects/parsed-completion.ts';
import { checkCount, type RequestBounds } from '../dialects/request.ts';
import { rowMembersOf } from '../dialects/response-options.ts';

const RESPONSE: Omit<ResponseOptions, 'model'> = {
  echo: false,
  echoLast: null,
  logprobs: null,
  listedLogprobs: false,
  rowMembers: [],
  tokensAsIds: false,
  tokenIds: false,
  promptLogprobs: null,
  timings: false,
  streamUsage: 'none',
  stream: false,
  tokensPerEvent: null,
  n: 1,
  rank: false,
};

/** A generation that generates nothing. */
const NOTHING: Omit<GenerationFields, 'prompts'> = {
  suffix: null,
  choices: 1,
  maxTokens: 0,
  minTokens: 0,
  stop: [],
  stopTokenIds: [],
  includeStop: false,
  ignoreEos: false,
  sampling: { ...NEUTRAL_SAMPLING, temperature: 0 },
  constraint: null,
  topLogprobs: null,
  promptTopLogprobs: null,
  echo: false,
  scores: false,
  tokenIds: false,
  skipSpecialTokens: true,
  addSpecialTokens: true,
  contextOverflow: 'error',
  truncatePromptTokens: null,
  cachePrompt: true,
  cacheSalt: '',
  stream: false,
};

/** The values of `commonFields`. */
type CommonFields = Pick<
  ScoreRequest,
  'model' | 'add_special_tokens' | 'parse_special' | 'cache_prompt' | 'prompt_cache_key' | 'user'
>;

/** Returns the generation whose events contain the scores. */
export function parsedScoring(
  { model, user, ...request }: CommonFields,
  fields: Partial<GenerationFields> & Pick<GenerationFields, 'prompts'>,
  rowMembers: ResponseOptions['rowMembers'] = [],
): ParsedCompletion {
  return {
    response: { ...RESPONSE, model, rowMembers },
    generation: {
      ...NOTHING,
      addSpecialTokens: request.add_special_tokens ?? true,
      ...(request.parse_special === false && { plainText: true }),
      cachePrompt: request.cache_prompt ?? true,
      cacheSalt: request.prompt_cache_key ?? '',
      ...fields,
    },
    constraintField: null,
    endUser: user ?? null,
    promptIsListed: false,
    extra: {},
  };
}

export interface ParsedLikelihoods {
  readonly parsed: ParsedCompletion;
  readonly tokenLogprobs: boolean;
}

/**
 * Parses a request for the likelihoods of continuations. The most likely token of each position
 * shows whether the continuation is the greedy one.
 * @throws ApiError 400 for the first invalid field
 */
export function parseLikelihoods(
  body: Readonly<Record<string, unknown>>,
  { sequences, logprobBytes }: RequestBounds,
): ParsedLikelihoods {
  const request = parseRequest(scoreRequest, body);
  const { prompt, continuations, tokenization } = request;
  checkCount('continuations', continuations.length, sequences);
  const context = { prompt, tokenization: tokenization ?? 'joint' };
  const rows = logprobRowsOf(request.logprobs_format, true, logprobBytes);
  const fields = { prompts: continuations, context, promptTopLogprobs: 1, echo: true, ...rows };
  const parsed = parsedScoring(request, fields, rowMembersOf(request.logprobs_format));
  return { parsed, tokenLogprobs: request.token_logprobs ?? false };
}

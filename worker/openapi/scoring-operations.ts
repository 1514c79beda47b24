import { scoreRequest, scoreResponse } from '../../shared/score.ts';
import { IDEMPOTENCY_HEADER, REPLAY_HEADERS } from '../http/headers.ts';
import { COMPLETION, type DocumentedOperation } from './documented-operation.ts';

const USAGE = {
  prompt_tokens: 12,
  completion_tokens: 0,
  total_tokens: 12,
  prompt_tokens_details: { cached_tokens: 0 },
};

const score = (index: number, logprob: number) => ({
  index,
  object: 'score',
  logprob,
  is_greedy: index === 0,
  token_count: 1,
  byte_count: 5,
});

/** Operations that score given texts. */
export const SCORING_OPERATIONS: Readonly<Record<string, DocumentedOperation>> = {
  'POST /v1/score': {
    id: 'createScore',
    summary: 'Score continuations of a prompt.',
    tag: 'Scoring',
    secured: true,
    body: {
      name: 'ScoreRequest',
      schema: scoreRequest.partial({ model: true }),
      examples: {
        texts: { model: 'default', prompt: 'The sky is', continuations: [' blue', ' green'] },
        ids: { model: 'default', prompt: [464, 6766], continuations: [[318], [373]], token_logprobs: true },
      },
    },
    answer: {
      name: 'Scores',
      schema: scoreResponse,
      example: {
        id: 'score-0f3a9c1d5b7e2846a0c4d8e2f6b1a395',
        object: 'list',
        created: 1_795_000_000,
        model: 'default',
        data: [score(0, -0.75), score(1, -4.5)],
        usage: USAGE,
      },
    },
    errors: COMPLETION,
    limited: true,
    answerHeaders: REPLAY_HEADERS,
    headers: {
      [IDEMPOTENCY_HEADER]:
        'Runs a request once: repeated with the same key within one hour, it gets the first response.',
    },
  },
};

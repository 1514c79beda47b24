import {
  generativeScoringResponse,
  labelScoreRequest,
  scoringResponse,
} from '@continuo/shared/label-scores.ts';
import { scoreRequest, scoreResponse } from '@continuo/shared/score.ts';
import * as z from 'zod';
import { BODY_HEADERS, REPLAY_HEADERS } from '../http/headers.ts';
import { COMPLETION, type DocumentedOperation, REPEATABLE } from './documented-operation.ts';

const ID = '0f3a9c1d5b7e2846a0c4d8e2f6b1a395';

const usage = (completionTokens: number) => ({
  prompt_tokens: 12,
  completion_tokens: completionTokens,
  total_tokens: 12 + completionTokens,
  prompt_tokens_details: { cached_tokens: 0 },
});

const common = {
  tag: 'Scoring',
  errors: COMPLETION,
  limited: true,
  answerHeaders: { ...REPLAY_HEADERS, ...BODY_HEADERS },
  headers: REPEATABLE,
} as const;

const likelihoods = scoreRequest.partial({ model: true });
const labels = labelScoreRequest.partial({ model: true });

const CITIES = {
  model: 'default',
  query: 'Is this city the capital of France? ',
  items: ['Paris', 'London'],
  label_token_ids: [311, 1_204],
};

/** Operations that score given texts. */
export const SCORING_OPERATIONS: Readonly<Record<string, DocumentedOperation>> = {
  'POST /v1/score': {
    id: 'createScore',
    summary:
      "Score continuations of a prompt. A body with query is SGLang's and gets the probabilities of labels.",
    ...common,
    body: {
      name: 'ScoreRequest',
      schema: z.union([likelihoods, labels]),
      examples: {
        texts: { model: 'default', prompt: 'The sky is', continuations: [' blue', ' green'] },
        ids: { model: 'default', prompt: [464, 3_766], continuations: [[318], [373]], token_logprobs: true },
        labels: CITIES,
      },
    },
    answer: {
      name: 'Scores',
      schema: z.union([scoreResponse, scoringResponse]),
      example: {
        id: `score-${ID}`,
        object: 'list',
        created: 1_795_000_000,
        model: 'default',
        data: [
          { index: 0, object: 'score', logprob: -0.75, is_greedy: true, token_count: 1, byte_count: 5 },
          { index: 1, object: 'score', logprob: -4.5, is_greedy: false, token_count: 1, byte_count: 6 },
        ],
        usage: usage(0),
      },
    },
  },
  'POST /generative_scoring': {
    id: 'createLabelScores',
    summary: "Compare the probabilities of labels after a query and each item, in vLLM's form.",
    ...common,
    body: { name: 'LabelScoreRequest', schema: labels, examples: { texts: CITIES } },
    answer: {
      name: 'LabelScores',
      schema: generativeScoringResponse,
      example: {
        id: `generative-scoring-${ID}`,
        object: 'list',
        created: 1_795_000_000,
        model: 'default',
        data: [
          { index: 0, object: 'score', score: 0.95 },
          { index: 1, object: 'score', score: 0.12 },
        ],
        usage: usage(2),
      },
    },
  },
};

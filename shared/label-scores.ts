import * as z from 'zod';
import { documented } from './documented.ts';
import { always, flag, integer, list, type ReadResult, required } from './json-fields.ts';
import { MAX_LISTED_LOGPROBS } from './logprob.ts';
import {
  commonFields,
  ids,
  MAX_CONTINUATIONS,
  readTextsOrIds,
  scoreEnvelope,
  scoreId,
  scoreRequest,
  scoreResponse,
  type TextOrIds,
  textOrIds,
} from './score.ts';

/**
 * The bodies of POST /generative_scoring, vLLM's endpoint for the probabilities of label tokens after a query
 * and an item. SGLang's POST /v1/score takes the same fields.
 */

const items = z.union([
  z.string(),
  z
    .array(z.union([z.string(), ids]))
    .min(1)
    .max(MAX_CONTINUATIONS),
]);

const readItems = (value: unknown): ReadResult<TextOrIds[]> =>
  readTextsOrIds(typeof value === 'string' ? [value] : value, 'items');

export const labelScoreRequest = z.object({
  ...commonFields,
  query: textOrIds('query').describe('The text that all items share, as a string or as token ids.'),
  items: required('items', items, readItems).describe(
    'The texts to score, as strings or as lists of token ids. A single string is one item.',
  ),
  label_token_ids: z
    .preprocess((value) => value ?? undefined, list(integer(0), { min: 1, max: MAX_LISTED_LOGPROBS }))
    .describe('The token ids whose probabilities after query and item are compared.'),
  apply_softmax: flag(
    'Divides the probabilities by their sum. Default: true at /generative_scoring, false at /v1/score.',
  ),
  item_first: flag('Puts each item before the query. Default: false.'),
});
export type LabelScoreRequest = z.output<typeof labelScoreRequest>;

const itemScore = z.object({
  index: z.int().min(0).describe('Number of the item in the request.'),
  object: always('score'),
  score: z.number().min(0).max(1).describe('Probability of the first label.'),
});

/** vLLM's form. */
export const generativeScoringResponse = z.object({
  id: scoreId('generative-scoring'),
  ...scoreEnvelope,
  object: always('list'),
  data: z.array(itemScore).describe('One score per item, in their order.'),
});

/** SGLang's form. */
export const scoringResponse = z.object({
  ...scoreEnvelope,
  object: always('scoring'),
  scores: z
    .array(z.array(z.number().min(0).max(1)))
    .describe('For each item, the probabilities of the labels in their order.'),
});

const CITIES = {
  model: 'default',
  query: 'Is this city the capital of France? ',
  items: ['Paris', 'London'],
  label_token_ids: [311, 1_204],
};

/** Some dialects have a default model. */
export const documentedLabelScoreRequest = labelScoreRequest
  .partial({ model: true })
  .register(documented, { name: 'LabelScoreRequest', examples: { texts: CITIES } });

generativeScoringResponse.register(documented, {
  name: 'LabelScores',
  example: {
    id: 'generative-scoring-0f3a9c1d5b7e2846a0c4d8e2f6b1a395',
    object: 'list',
    created: 1_795_000_000,
    model: 'default',
    data: [
      { index: 0, object: 'score', score: 0.95 },
      { index: 1, object: 'score', score: 0.12 },
    ],
    usage: {
      prompt_tokens: 12,
      completion_tokens: 2,
      total_tokens: 14,
      prompt_tokens_details: { cached_tokens: 0 },
    },
  },
});

/** Both forms of POST /v1/score, for the documents. */
export const documentedScoreRequest = z
  .union([scoreRequest.partial({ model: true }), documentedLabelScoreRequest])
  .register(documented, {
    name: 'ScoreRequest',
    examples: {
      texts: { model: 'default', prompt: 'The sky is', continuations: [' blue', ' green'] },
      ids: { model: 'default', prompt: [464, 3_766], continuations: [[318], [373]], token_logprobs: true },
      labels: CITIES,
    },
  });
export const documentedScoreResponse = z.union([scoreResponse, scoringResponse]).register(documented, {
  name: 'Scores',
  example: {
    id: 'score-0f3a9c1d5b7e2846a0c4d8e2f6b1a395',
    object: 'list',
    created: 1_795_000_000,
    model: 'default',
    data: [
      { index: 0, object: 'score', logprob: -0.75, is_greedy: true, token_count: 1, byte_count: 5 },
      { index: 1, object: 'score', logprob: -4.5, is_greedy: false, token_count: 1, byte_count: 6 },
    ],
    usage: {
      prompt_tokens: 12,
      completion_tokens: 0,
      total_tokens: 12,
      prompt_tokens_details: { cached_tokens: 0 },
    },
  },
});

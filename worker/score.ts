import {
  documentedLabelScoreRequest,
  documentedScoreRequest,
  documentedScoreResponse,
  generativeScoringResponse,
  labelScoreRequest,
} from '@continuo/shared/label-scores.ts';
import { scoreRequest } from '@continuo/shared/score.ts';
import type * as z from 'zod';
import { GENERATION, generate, type ReadBody } from './completions.ts';
import type { ParsedCompletion } from './dialects/parsed-completion.ts';
import type { RequestBounds } from './dialects/request.ts';
import { type ChooseFormat, plainResponse } from './generation/plain-response.ts';
import { BODY_HEADERS } from './http/headers.ts';
import { type Operation, operation } from './operations/operation.ts';
import { type LabelStyle, labelFormat, parseLabels } from './score/label-scores.ts';
import { likelihoodFormat } from './score/likelihoods.ts';
import { parseLikelihoods } from './score/parsed-score.ts';

type Body = Readonly<Record<string, unknown>>;

const wantsLabels = ({ query = null, items = null, continuations = null }: Body): boolean =>
  query !== null || (items !== null && continuations === null);

function readLikelihoods(body: Body, bounds: RequestBounds): ReadBody {
  const request = parseLikelihoods(body, bounds);
  return plain(request.parsed, scoreRequest, ({ envelope }) => likelihoodFormat(request, envelope));
}

function readLabels(body: Body, bounds: RequestBounds, style: LabelStyle): ReadBody {
  const request = parseLabels(body, bounds, style);
  return plain(request.parsed, labelScoreRequest, ({ envelope }) => labelFormat(request, envelope));
}

const plain = (parsed: ParsedCompletion, schema: z.ZodObject, format: ChooseFormat): ReadBody => ({
  parsed,
  schema,
  respond: (generation, context) => plainResponse(generation, context, format),
});

const common = { ...GENERATION, responseHeaders: BODY_HEADERS };

export const SCORING_OPERATIONS: readonly Operation[] = [
  operation('POST', '/v1/score', {
    ...common,
    id: 'createScore',
    summary:
      "Score continuations of a prompt. A body with query is SGLang's and gets the probabilities of labels.",
    ownBody: documentedScoreRequest,
    response: documentedScoreResponse,
    run: (input, context) =>
      generate(input, context, (body, { bounds }) =>
        wantsLabels(body) ? readLabels(body, bounds, 'sglang') : readLikelihoods(body, bounds),
      ),
  }),
  operation('POST', '/generative_scoring', {
    ...common,
    id: 'createLabelScores',
    summary: "Compare the probabilities of labels after a query and each item, in vLLM's form.",
    ownBody: documentedLabelScoreRequest,
    response: generativeScoringResponse,
    run: (input, context) => generate(input, context, (body, { bounds }) => readLabels(body, bounds, 'vllm')),
  }),
];

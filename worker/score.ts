import { labelScoreRequest } from '@continuo/shared/label-scores.ts';
import { scoreRequest } from '@continuo/shared/score.ts';
import type * as z from 'zod';
import { generate, type ReadCall } from './completions.ts';
import type { CompletionCall } from './dialects/completion-call.ts';
import type { RequestBounds } from './dialects/request.ts';
import { answerPlain, type ChooseFormat } from './generation/plain-answer.ts';
import type { RouteHandler } from './http/router.ts';
import { type LabelStyle, labelFormat, parseLabels } from './score/label-scores.ts';
import { likelihoodFormat } from './score/likelihoods.ts';
import { parseLikelihoods } from './score/score-call.ts';

/** POST /v1/score: likelihoods of continuations; with `query`, probabilities of labels in SGLang's form. */
export const score: RouteHandler = (request, context) =>
  generate(request, context, (body, { bounds }) =>
    wantsLabels(body) ? readLabels(body, bounds, 'sglang') : readLikelihoods(body, bounds),
  );

/** POST /generative_scoring: probabilities of labels in vLLM's form. */
export const scoreLabels: RouteHandler = (request, context) =>
  generate(request, context, (body, { bounds }) => readLabels(body, bounds, 'vllm'));

type Body = Readonly<Record<string, unknown>>;

const wantsLabels = ({ query = null, items = null, continuations = null }: Body): boolean =>
  query !== null || (items !== null && continuations === null);

function readLikelihoods(body: Body, bounds: RequestBounds): ReadCall {
  const parsed = parseLikelihoods(body, bounds);
  return answered(parsed.call, scoreRequest, ({ envelope }) => likelihoodFormat(parsed, envelope));
}

function readLabels(body: Body, bounds: RequestBounds, style: LabelStyle): ReadCall {
  const parsed = parseLabels(body, bounds, style);
  return answered(parsed.call, labelScoreRequest, ({ envelope }) => labelFormat(parsed, envelope));
}

const answered = (call: CompletionCall, schema: z.ZodObject, format: ChooseFormat): ReadCall => ({
  call,
  schema,
  answer: (generation, context) => answerPlain(generation, context, format),
});

import { generate } from '../completions.ts';
import type { RequestContext } from '../context.ts';
import { answerPlain } from '../generation/plain-answer.ts';
import { LikelihoodFormat } from './likelihoods.ts';
import { parseLikelihoods } from './score-call.ts';

/** POST /v1/score: the likelihoods of continuations of a prompt. */
export function score(request: Request, context: RequestContext): Promise<Response> {
  return generate(request, context, (body, { bounds }) => {
    const parsed = parseLikelihoods(body, bounds);
    return {
      call: parsed.call,
      answer: (starting) =>
        answerPlain(starting, context, ({ envelope }) => new LikelihoodFormat(parsed, envelope)),
    };
  });
}

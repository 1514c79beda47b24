import { ApiError } from '@continuo/shared/errors.ts';
import type {
  EventOf,
  GenerationEvent,
  GenerationRequest,
  TokenLogprob,
  WirePrompt,
} from '@continuo/shared/generation.ts';
import { withoutTrailingSpace } from '@continuo/shared/score.ts';
import { unsupported } from './openai-request.ts';

/** Scores continuations at an OpenAI-compatible server, which echoes prompts with their logprobs. */

/** A request for the likelihoods of continuations. */
export interface ScoringRequest extends GenerationRequest {
  readonly context: NonNullable<GenerationRequest['context']>;
}

export const isScoring = (request: GenerationRequest): request is ScoringRequest =>
  request.context !== undefined;

export const cannotScore = (model: string): ApiError =>
  new ApiError(
    'unsupported_endpoint',
    `The server behind the model '${model}' cannot score a prompt. Use a model of another server, for example of vLLM.`,
    { param: 'model' },
  );

/** True if a server refuses a request because it cannot echo a prompt with logprobs. */
export const refusesEcho = ({ status, message }: ApiError): boolean =>
  status === 400 && /\b(echo|logprobs)\b/i.test(message);

/**
 * Returns the request whose prompts are the context and a continuation each, to be sent with `echo`.
 * @throws ApiError 400 for what needs the server's tokenizer; 415 for a server that cannot echo
 */
export function echoRequest({ context, ...request }: ScoringRequest): Omit<GenerationRequest, 'context'> {
  const prompts = request.prompts.map((continuation): WirePrompt => {
    if (typeof context.prompt === 'string' && typeof continuation === 'string') {
      if (context.tokenization === 'joint') return context.prompt + continuation;
      throw unsupported('tokenization', "encode texts separately; use 'joint' or token ids");
    }
    if (typeof context.prompt !== 'string' && typeof continuation !== 'string') {
      return [...context.prompt, ...continuation];
    }
    throw unsupported('continuations', 'join texts and token ids; send only texts or only token ids');
  });
  return { ...request, prompts, topLogprobs: 1, promptTopLogprobs: null, echo: false };
}

/**
 * Returns the events of the response to an echo request as those of the scoring request.
 * @throws ApiError 415 if the server has not echoed all prompts with logprobs
 */
export function scoringEvents(
  events: readonly GenerationEvent[],
  request: ScoringRequest,
): readonly GenerationEvent[] {
  return events.map((event) => {
    if (event.type === 'token') return promptEvent(event, request);
    if (event.type === 'finish') return { ...event, completionTokens: 0 };
    return event.type === 'done' ? { ...event, usage: { ...event.usage, completionTokens: 0 } } : event;
  });
}

function promptEvent(
  { choice, text, logprobs = [] }: EventOf<'token'>,
  { context, prompts, model }: ScoringRequest,
): EventOf<'prompt'> {
  const continuation = prompts[choice] ?? '';
  const isText = typeof continuation === 'string';
  const tokens = isText
    ? tokensOfText(logprobs, scoredText(context.prompt, continuation))
    : logprobs.slice(context.prompt.length);
  const isEchoed = isText
    ? logprobs.length > 0 && text === `${context.prompt}${continuation}`
    : tokens.length === continuation.length;
  if (!isEchoed || !tokens.every(hasLogprobs)) throw cannotScore(model);
  if (tokens.length === 0) throw emptyContinuation(choice);
  return { type: 'prompt', prompt: choice, text: '', ids: tokens.map(({ id }) => id), logprobs: [...tokens] };
}

const hasLogprobs = ({ logprob, topLogprobs }: TokenLogprob): boolean =>
  logprob !== null && topLogprobs !== null && topLogprobs.length > 0;

/** Encoded jointly, the white space at the end of the context belongs to the continuation. */
const scoredText = (context: WirePrompt, continuation: string): string =>
  typeof context === 'string'
    ? context.slice(withoutTrailingSpace(context).length) + continuation
    : continuation;

/** Returns the tokens in the text at the end. One that begins before it belongs to the context. */
function tokensOfText(tokens: readonly TokenLogprob[], text: string): readonly TokenLogprob[] {
  let bytes = new TextEncoder().encode(text).length;
  let from = tokens.length;
  while (from > 0) {
    bytes -= tokens[from - 1]?.bytes.length ?? 0;
    if (bytes < 0) break;
    from -= 1;
  }
  return tokens.slice(from);
}

const emptyContinuation = (index: number): ApiError =>
  new ApiError(
    'invalid_value',
    `Invalid 'continuations[${index}]': none of its tokens begins after the prompt. Send token ids.`,
    { param: `continuations[${index}]` },
  );

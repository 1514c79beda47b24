import type { ErrorCode } from '@continuo/shared/errors.ts';
import type { EventOf, GenerationEvent, GenerationRequest, Usage } from '@continuo/shared/generation.ts';
import { type ChunkChoice, type ChunkUsage, chunk, TokenNumbers, tokensOf } from './openai-chunk.ts';
import { blamesRequest, codeOfFault, faultOf, type ServerFault } from './openai-errors.ts';
import { estimateTokens } from './token-estimate.ts';
import { malformed } from './upstream-errors.ts';

interface Choice {
  tokens: number;
  score: number;
  finished: boolean;
}

/** Finish reasons after which the text is incomplete. */
const ABORTED: ReadonlySet<string> = new Set(['abort', 'error', 'cancelled']);

const CUT_OFF = 'The model server ended the completion before it had finished.';

/** Returns the message for the client. Other errors of the server may name its addresses, paths and keys. */
function messageOf(fault: ServerFault): string {
  const { message } = fault;
  return blamesRequest(fault) && message !== ''
    ? message.slice(0, 500)
    : 'The model server reported an error.';
}

/** Turns the chunks of one answer into generation events. */
export class OpenAiEvents {
  readonly #request: GenerationRequest;
  readonly #choices: readonly Choice[];
  readonly #numbers = new TokenNumbers();
  #usage: ChunkUsage = null;
  #ended = false;

  constructor(request: GenerationRequest) {
    this.#request = request;
    this.#choices = Array.from({ length: request.prompts.length * request.choices }, () => ({
      tokens: 0,
      score: 0,
      finished: false,
    }));
  }

  /** Returns the events of an accepted request. */
  opening(): GenerationEvent[] {
    const { prompts, model, echo } = this.#request;
    const promptTokens = prompts.map(estimateTokens);
    // Token ids with `echo` have been rejected, because the Worker cannot decode them.
    const echoes = prompts.flatMap((text, prompt): EventOf<'prompt'>[] =>
      typeof text === 'string' ? [{ type: 'prompt', prompt, text, ids: [] }] : [],
    );
    return [
      { type: 'accepted', model, promptTokens },
      ...prompts.map((_, prompt) => ({ type: 'started', prompt, cachedTokens: 0, queueMs: 0 }) as const),
      ...(echo ? echoes : []),
    ];
  }

  /** @throws ApiError 502 for a payload that is not a chunk */
  push(payload: string): GenerationEvent[] {
    if (this.#ended) return [];
    if (payload === '[DONE]') return [this.#isFinished ? this.#done() : this.#failed(CUT_OFF)];
    return this.#chunk(parseJson(payload));
  }

  /** Returns all events of a plain answer after `opening`. @throws ApiError 502 for a body that is not an answer */
  whole(answer: unknown): GenerationEvent[] {
    const events = this.#chunk(answer);
    if (this.#ended) return events;
    return [...events, this.#isFinished ? this.#done() : this.#failed(CUT_OFF)];
  }

  #chunk(value: unknown): GenerationEvent[] {
    const fault = faultOf(value);
    // An invalid request does not count against the server.
    if (fault) return [this.#failed(messageOf(fault), blamesRequest(fault) ? codeOfFault(fault) : undefined)];
    const parsed = chunk.safeParse(value);
    if (!parsed.success) throw malformed();
    const { choices, usage } = parsed.data;
    this.#usage = usage ?? this.#usage;
    return (choices ?? []).flatMap((choice) => (this.#ended ? [] : this.#choice(choice)));
  }

  /** Returns the terminal event at the end of the stream, if [DONE] is missing. */
  end(): GenerationEvent[] {
    return this.#ended || !this.#isFinished ? [] : [this.#done()];
  }

  get #isFinished(): boolean {
    return this.#choices.every(({ finished }) => finished);
  }

  #choice(found: ChunkChoice): GenerationEvent[] {
    const choice = this.#choices[found.index];
    if (!choice) throw malformed();
    if (choice.finished) return [];
    const events: GenerationEvent[] = [];
    const text = found.text ?? '';
    const tokens = tokensOf(found, this.#numbers);
    if (text !== '' || tokens.length > 0) {
      // Without logprobs a chunk usually carries one token; the server's usage corrects the sum at the end.
      const unnamed = this.#request.stream ? 1 : estimateTokens(text);
      choice.tokens += tokens.length > 0 ? tokens.length : unnamed;
      choice.score += tokens.reduce((sum, { logprob }) => sum + (logprob ?? 0), 0);
      const logprobs = this.#request.topLogprobs === null ? {} : { logprobs: tokens };
      events.push({
        type: 'token',
        choice: found.index,
        text,
        completionTokens: choice.tokens,
        ...logprobs,
      });
    }
    // Some servers give no reason; a plain answer is complete without one.
    const reason = found.finish_reason ?? (this.#request.stream ? '' : 'stop');
    if (ABORTED.has(reason)) events.push(this.#failed(CUT_OFF));
    else if (reason !== '') events.push(this.#finish(found, choice));
    return events;
  }

  #finish({ index, finish_reason, stop_reason }: ChunkChoice, choice: Choice): GenerationEvent {
    choice.finished = true;
    return {
      type: 'finish',
      choice: index,
      reason: finish_reason === 'length' ? 'length' : 'stop',
      stopReason: stop_reason ?? null,
      completionTokens: choice.tokens,
      ...(this.#request.scores && { score: choice.score }),
    };
  }

  /** Returns the server's usage; counts where the server reports none. */
  #usageSoFar(): Usage {
    const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
    const reported = this.#usage;
    const cached = reported?.prompt_tokens_details?.cached_tokens ?? undefined;
    return {
      promptTokens: reported?.prompt_tokens ?? sum(this.#request.prompts.map(estimateTokens)),
      cachedTokens: cached ?? 0,
      ...(cached === undefined && { cacheUnknown: true }),
      completionTokens: reported?.completion_tokens ?? sum(this.#choices.map(({ tokens }) => tokens)),
    };
  }

  #done(): GenerationEvent {
    this.#ended = true;
    return {
      type: 'done',
      usage: this.#usageSoFar(),
      timings: { queueMs: 0, promptMs: 0, generationMs: 0 },
    };
  }

  /** @param wrong error code if the request is invalid */
  #failed(message: string, wrong?: ErrorCode): GenerationEvent {
    this.#ended = true;
    return {
      type: 'error',
      code: wrong ?? 'upstream_error',
      message,
      param: wrong === 'context_length_exceeded' ? 'prompt' : null,
      retryable: wrong === undefined,
      usage: this.#usageSoFar(),
    };
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

import type { ErrorCode } from '../../shared/errors.ts';
import type { EventOf, GenerationEvent, GenerationRequest, Usage } from '../../shared/generation.ts';
import { estimateTokens } from '../limits/token-estimate.ts';
import { type ChunkChoice, type ChunkUsage, chunk, TokenNumbers, tokensOf } from './openai-chunk.ts';
import { blamesRequest, codeOf, type Fault, faultOf } from './openai-fault.ts';
import { malformed } from './upstream-errors.ts';

interface Choice {
  tokens: number;
  score: number;
  finished: boolean;
}

/** Finish reasons of servers that gave up: the text is no whole answer. */
const ABORTED: ReadonlySet<string> = new Set(['abort', 'error', 'cancelled']);

const CUT_OFF = 'The model server ended the completion before it had finished.';

/** What ails the server itself may name its addresses, paths and keys, which are no caller's business. */
function told(fault: Fault): string {
  const { message } = fault;
  return blamesRequest(fault) && message !== ''
    ? message.slice(0, 500)
    : 'The model server reported an error.';
}

/** Turns the chunks of one answer into our events. */
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

  /** What can be said as soon as the server has accepted the request. */
  opening(): GenerationEvent[] {
    const { prompts, model, echo } = this.#request;
    const promptTokens = prompts.map(estimateTokens);
    // Ids would have been refused together with `echo`: this side cannot turn them into text.
    const echoes = prompts.flatMap((text, prompt): EventOf<'prompt'>[] =>
      typeof text === 'string' ? [{ type: 'prompt', prompt, text, ids: [] }] : [],
    );
    return [
      { type: 'accepted', model, promptTokens },
      ...prompts.map((_, prompt) => ({ type: 'started', prompt, cachedTokens: 0, queueMs: 0 }) as const),
      ...(echo ? echoes : []),
    ];
  }

  /** @throws ApiError 502 for a payload that is no chunk */
  push(payload: string): GenerationEvent[] {
    if (this.#ended) return [];
    if (payload === '[DONE]') return [this.#isFinished ? this.#done() : this.#failed(CUT_OFF)];
    const value = parseJson(payload);
    const fault = faultOf(value);
    // A request that is wrong is wrong everywhere, and says nothing against the server.
    if (fault) return [this.#failed(told(fault), blamesRequest(fault) ? codeOf(fault) : undefined)];
    const parsed = chunk.safeParse(value);
    if (!parsed.success) throw malformed();
    const { choices, usage } = parsed.data;
    this.#usage = usage ?? this.#usage;
    return (choices ?? []).flatMap((choice) => (this.#ended ? [] : this.#choice(choice)));
  }

  /** The stream ended: nothing more to say if all was said. */
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
      // A server that shows no tokens sends one per chunk, as a rule; its usage corrects the sum at the end.
      choice.tokens += Math.max(1, tokens.length);
      choice.score += tokens.reduce((sum, { logprob }) => sum + (logprob ?? 0), 0);
      const shown = this.#request.logprobs === null ? {} : { tokens };
      events.push({
        type: 'token',
        choice: found.index,
        text,
        completionTokens: choice.tokens,
        ...shown,
      });
    }
    if (ABORTED.has(found.finish_reason ?? '')) events.push(this.#failed(CUT_OFF));
    else if (found.finish_reason) events.push(this.#finish(found, choice));
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

  /** As the server says, and counted here where it does not. */
  #used(): Usage {
    const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
    const said = this.#usage;
    return {
      promptTokens: said?.prompt_tokens ?? sum(this.#request.prompts.map(estimateTokens)),
      cachedTokens: said?.prompt_tokens_details?.cached_tokens ?? 0,
      completionTokens: said?.completion_tokens ?? sum(this.#choices.map(({ tokens }) => tokens)),
    };
  }

  #done(): GenerationEvent {
    this.#ended = true;
    return {
      type: 'done',
      usage: this.#used(),
      timings: { queueMs: 0, promptMs: 0, generationMs: 0 },
    };
  }

  /** @param wrong what is wrong with the request, where it is at fault */
  #failed(message: string, wrong?: ErrorCode): GenerationEvent {
    this.#ended = true;
    return {
      type: 'error',
      code: wrong ?? 'upstream_error',
      message,
      param: wrong === 'context_length_exceeded' ? 'prompt' : null,
      retryable: wrong === undefined,
      usage: this.#used(),
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

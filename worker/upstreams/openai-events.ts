import type { ErrorCode } from '@continuo/shared/errors.ts';
import type {
  EventOf,
  GenerationEvent,
  GenerationRequest,
  TokenLogprob,
  Usage,
  WirePrompt,
} from '@continuo/shared/generation.ts';
import {
  type ChunkChoice,
  type ChunkUsage,
  chunkOf,
  onlyTextOf,
  promptTokensOf,
  TokenNumbers,
  tokensOf,
} from './openai-chunk.ts';
import { blamesRequest, codeOfFault, faultOf, type ServerFault } from './openai-errors.ts';
import { echoesLogprobs } from './openai-fields.ts';
import { cannotScore } from './openai-scoring.ts';
import { RepeatedChunk } from './repeated-chunk.ts';
import { estimateTokens } from './token-estimate.ts';
import type { ShownPrompt } from './upstream.ts';
import { malformed } from './upstream-errors.ts';

interface Choice {
  tokens: number;
  started: boolean;
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

/**
 * True if a response, or its first chunk, begins with the prompt and its logprobs. Nothing predicts the first
 * token.
 */
function isEcho(prompt: WirePrompt, text: string, tokens: readonly TokenLogprob[]): boolean {
  if (tokens[0]?.logprob !== null) return false;
  return typeof prompt !== 'string' || text.startsWith(prompt) || prompt.startsWith(text);
}

/** Turns the chunks of one response into generation events. */
export class OpenAiEvents {
  readonly #request: GenerationRequest;
  readonly #choices: readonly Choice[];
  readonly #numbers = new TokenNumbers();
  readonly #shown: ShownPrompt;
  /** The server sends the prompt and its logprobs before the completion. */
  readonly #echoes: boolean;
  /** Null while no chunk has had only a text. */
  #repeated: RepeatedChunk | null = null;
  #usage: ChunkUsage = null;
  #ended = false;

  /** @param shown what the response shows of the prompt */
  constructor(request: GenerationRequest, shown: ShownPrompt) {
    this.#request = request;
    this.#shown = shown;
    this.#echoes = echoesLogprobs(request, shown);
    this.#choices = Array.from({ length: request.prompts.length * request.choices }, (_, index) => ({
      // An echoed prompt is not generated.
      tokens: this.#echoes ? -estimateTokens(this.#promptOf(index)) : 0,
      started: false,
      score: 0,
      finished: false,
    }));
  }

  /** Returns the events of an accepted request. */
  opening(): GenerationEvent[] {
    const { prompts, model, echo } = this.#request;
    const promptTokens = prompts.map(estimateTokens);
    const opens = echo && !this.#echoes && this.#shown.promptLogprobs === null;
    // Other token ids with `echo` have been rejected, because the Worker cannot decode them.
    const echoes = prompts.flatMap((text, prompt): EventOf<'prompt'>[] =>
      typeof text === 'string' ? [{ type: 'prompt', prompt, text, ids: [] }] : [],
    );
    return [
      { type: 'accepted', model, promptTokens },
      ...prompts.map((_, prompt) => ({ type: 'started', prompt, cachedTokens: 0, queueMs: 0 }) as const),
      ...(opens ? echoes : []),
    ];
  }

  /** @throws ApiError 502 for a payload that is not a chunk */
  push(payload: string): GenerationEvent[] {
    if (this.#ended) return [];
    if (payload === '[DONE]') return [this.#isFinished ? this.#done() : this.#failed(CUT_OFF)];
    const text = this.#repeated?.textOf(payload) ?? null;
    if (text !== null) return this.#choice({ index: this.#repeated!.choice, text });
    const value = parseJson(payload);
    const events = this.#chunk(value);
    const only = onlyTextOf(value);
    this.#repeated = only && RepeatedChunk.of(payload, only);
    return events;
  }

  /** Returns all events of a plain response after `opening`. @throws ApiError 502 for a body that is none */
  whole(body: unknown): GenerationEvent[] {
    const events = this.#chunk(body);
    if (this.#ended) return events;
    return [...events, this.#isFinished ? this.#done() : this.#failed(CUT_OFF)];
  }

  #chunk(value: unknown): GenerationEvent[] {
    const fault = faultOf(value);
    // An invalid request does not count against the server.
    if (fault) return [this.#failed(messageOf(fault), blamesRequest(fault) ? codeOfFault(fault) : undefined)];
    const parsed = chunkOf(value);
    if (parsed === null) throw malformed();
    const { choices, usage } = parsed;
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

  #choice(received: ChunkChoice): GenerationEvent[] {
    const choice = this.#choices[received.index];
    if (!choice) throw malformed();
    if (choice.finished) return [];
    const events: GenerationEvent[] = [];
    const text = received.text ?? '';
    const tokens = tokensOf(received, this.#numbers);
    // A stream may begin with a chunk without text.
    if (!choice.started && (text !== '' || tokens.length > 0 || !this.#request.stream)) {
      events.push(...this.#promptEvents(received, tokens));
      choice.started = true;
    }
    if (text !== '' || tokens.length > 0) {
      // Without logprobs a chunk usually carries one token; the server's usage corrects the sum at the end.
      const unnamed = this.#request.stream ? 1 : estimateTokens(text);
      choice.tokens += tokens.length > 0 ? tokens.length : unnamed;
      choice.score += tokens.reduce((sum, { logprob }) => sum + (logprob ?? 0), 0);
      const logprobs = this.#request.topLogprobs === null ? {} : { logprobs: tokens };
      events.push({
        type: 'token',
        choice: received.index,
        text,
        completionTokens: Math.max(0, choice.tokens),
        ...logprobs,
      });
    }
    // Some servers give no reason; a plain response is complete without one.
    const reason = received.finish_reason ?? (this.#request.stream ? '' : 'stop');
    if (ABORTED.has(reason)) events.push(this.#failed(CUT_OFF));
    else if (reason !== '') events.push(this.#finish(received, choice));
    return events;
  }

  #promptOf(choice: number): WirePrompt {
    return this.#request.prompts[Math.floor(choice / this.#request.choices)] ?? '';
  }

  /**
   * Checks that a choice begins with the logprobs of its prompt, if they are wanted. Returns the event of
   * `prompt_logprobs`.
   * @throws ApiError 415 if the server has left them out
   */
  #promptEvents(received: ChunkChoice, tokens: readonly TokenLogprob[]): EventOf<'prompt'>[] {
    const { model, choices } = this.#request;
    const text = this.#promptOf(received.index);
    if (this.#echoes && !isEcho(text, received.text ?? '', tokens)) throw cannotScore(model);
    if (this.#shown.promptLogprobs === null || received.index % choices > 0) return [];
    const logprobs = promptTokensOf(received);
    if (logprobs === null) throw cannotScore(model);
    const shown = this.#shown.echo && typeof text === 'string' ? text : '';
    return [{ type: 'prompt', prompt: received.index / choices, text: shown, ids: [], logprobs }];
  }

  #finish({ index, finish_reason, stop_reason }: ChunkChoice, choice: Choice): GenerationEvent {
    choice.finished = true;
    return {
      type: 'finish',
      choice: index,
      reason: finish_reason === 'length' ? 'length' : 'stop',
      stopReason: stop_reason ?? null,
      completionTokens: Math.max(0, choice.tokens),
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
      completionTokens:
        reported?.completion_tokens ?? sum(this.#choices.map(({ tokens }) => Math.max(0, tokens))),
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

/** Joins consecutive texts of a choice to one event. */
export function joinTexts(events: readonly GenerationEvent[]): GenerationEvent[] {
  const joined: GenerationEvent[] = [];
  for (const event of events) {
    const last = joined.at(-1);
    const continues = event.type === 'token' && last?.type === 'token' && event.choice === last.choice;
    if (continues) joined[joined.length - 1] = { ...event, text: last.text + event.text };
    else joined.push(event);
  }
  return joined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

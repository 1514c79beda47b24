import type { EventOf, FinishReason, GenerationEvent, TokenLogprob } from '@continuo/shared/generation.ts';
import { MAX_LISTED_LOGPROBS } from '@continuo/shared/logprob.ts';
import type { ResponseOptions } from '../../dialects/parsed-completion.ts';
import { type Logprobs, LogprobsFormatter, promptLogprobsJson } from './openai-logprobs.ts';
import { codePointLength } from './text-offsets.ts';
import { lossyText } from './token-text.ts';

/** What one event adds to one choice. A stream sends the deltas one by one, a plain response is their sum. */
export interface ChoiceDelta {
  /** Prompt index · candidates per prompt + candidate index. */
  readonly choice: number;
  readonly text: string;
  readonly logprobs: Logprobs | null;
  /** The tokens of `text` with their logprobs, not formatted; empty if not requested. */
  readonly tokens: readonly TokenLogprob[];
  readonly tokenIds: readonly number[] | null;
  readonly promptTokenIds: readonly number[] | null;
  /** JSON text. */
  readonly promptLogprobs: string | null;
  /** Set on the last delta of a choice. */
  readonly finish: Finish | null;
}

export interface Finish {
  readonly reason: FinishReason;
  readonly stopReason: string | number | null;
  readonly completionTokens: number;
  readonly score: number;
}

interface Pending {
  formatter: LogprobsFormatter | null;
  logprobs: TokenLogprob[];
  ids: number[];
}

/** A delta that adds nothing. */
export const NOTHING = {
  text: '',
  logprobs: null,
  tokens: [],
  tokenIds: null,
  promptTokenIds: null,
  promptLogprobs: null,
  finish: null,
};

/**
 * Turns generation events into deltas. Holds a token back until its text is sent, so that both come together,
 * unless the tokens per event are limited.
 */
export class ChoiceDeltas {
  readonly #options: ResponseOptions;
  /** Candidates per prompt. */
  readonly #candidates: number;
  readonly #pending = new Map<number, Pending>();

  constructor(options: ResponseOptions, candidates: number) {
    this.#options = options;
    this.#candidates = candidates;
  }

  of(event: GenerationEvent): readonly ChoiceDelta[] {
    switch (event.type) {
      case 'prompt':
        return this.#prompt(event);
      case 'token':
        return this.#token(event);
      case 'finish':
        return [this.#finish(event)];
      default:
        return [];
    }
  }

  /** @param of listed ids are for generated tokens only */
  #formatter(start: number, of: 'prompt' | 'completion' = 'completion'): LogprobsFormatter | null {
    const { logprobs, listedLogprobs, tokensAsIds, tokenIds, rowMembers } = this.#options;
    if (logprobs === null) return null;
    const topLogprobs = listedLogprobs && of === 'completion' ? MAX_LISTED_LOGPROBS : logprobs;
    return new LogprobsFormatter({ topLogprobs, tokensAsIds, tokenIds, rowMembers }, start);
  }

  #pendingOf(choice: number): Pending {
    const existing = this.#pending.get(choice);
    if (existing) return existing;
    const pending = { formatter: this.#formatter(0), logprobs: [], ids: [] };
    this.#pending.set(choice, pending);
    return pending;
  }

  /** Adds the echoed prompt to each of its choices. The offsets of generated tokens then start after it. */
  #prompt(event: EventOf<'prompt'>): readonly ChoiceDelta[] {
    const { echo, echoLast, tokenIds, promptLogprobs: topLogprobs } = this.#options;
    if (!echo && !tokenIds && topLogprobs === null) return [];
    const all = event.logprobs ?? [];
    const tokens = echoLast === null ? all : all.slice(Math.max(0, all.length - echoLast));
    const text = !echo ? '' : echoLast === null ? event.text : visibleText(tokens);
    const delta = {
      ...NOTHING,
      text,
      logprobs: echo ? (this.#formatter(0, 'prompt')?.format(tokens) ?? null) : null,
      promptTokenIds: tokenIds ? event.ids : null,
      promptLogprobs: topLogprobs === null ? null : promptLogprobsJson(all, topLogprobs),
    };
    const start = codePointLength(text);
    const deltas = Array.from({ length: this.#candidates }, (_, candidate) => {
      const choice = event.prompt * this.#candidates + candidate;
      this.#pendingOf(choice).formatter = this.#formatter(start);
      return { ...delta, choice };
    });
    // A prompt of hidden special tokens has no text.
    const shows = text !== '' || delta.logprobs || delta.promptTokenIds || delta.promptLogprobs;
    return shows ? deltas : [];
  }

  #token(event: EventOf<'token'>): readonly ChoiceDelta[] {
    const pending = this.#pendingOf(event.choice);
    for (const token of event.logprobs ?? []) pending.logprobs.push(token);
    for (const id of event.ids ?? []) pending.ids.push(id);
    const { tokensPerEvent } = this.#options;
    const isFull =
      tokensPerEvent !== null && Math.max(pending.logprobs.length, pending.ids.length) >= tokensPerEvent;
    if (event.text === '' && !isFull) return [];
    return [{ ...NOTHING, choice: event.choice, text: event.text, ...this.#release(pending) }];
  }

  #finish(event: EventOf<'finish'>): ChoiceDelta {
    const { choice, reason, stopReason, completionTokens } = event;
    const released = this.#release(this.#pendingOf(choice));
    this.#pending.delete(choice);
    const finish = { reason, stopReason: stopReason ?? null, completionTokens, score: event.score ?? 0 };
    return { ...NOTHING, choice, ...released, finish };
  }

  /** Returns the held-back tokens, formatted; null for what was not requested or is empty. */
  #release(pending: Pending): Pick<ChoiceDelta, 'logprobs' | 'tokens' | 'tokenIds'> {
    const { formatter, logprobs, ids } = pending;
    pending.logprobs = [];
    pending.ids = [];
    return {
      logprobs: formatter !== null && logprobs.length > 0 ? formatter.format(logprobs) : null,
      tokens: logprobs,
      tokenIds: this.#options.tokenIds && ids.length > 0 ? ids : null,
    };
  }
}

const visibleText = (tokens: readonly TokenLogprob[]): string =>
  lossyText(
    tokens
      .filter(({ hidden }) => !hidden)
      .map(({ bytes }) => bytes)
      .join(''),
  );

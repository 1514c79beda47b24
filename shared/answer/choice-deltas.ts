import type { EventOf, FinishReason, GenerationEvent, TokenLogprob } from '../generation.ts';
import type { AnswerForm } from './answer-form.ts';
import { codePointLength } from './code-points.ts';
import { type Logprobs, LogprobsFormatter } from './openai-logprobs.ts';
import { type PromptLogprobs, promptLogprobs } from './prompt-logprobs.ts';
import { lossyText } from './token-text.ts';

/** What one event adds to one choice. The plain answer is the sum of the very deltas that a stream sends one by one. */
export interface ChoiceDelta {
  /** Candidate's number: prompt index · candidates per prompt + candidate index. */
  readonly choice: number;
  readonly text: string;
  readonly logprobs: Logprobs | null;
  readonly tokenIds: readonly number[] | null;
  readonly promptTokenIds: readonly number[] | null;
  readonly promptLogprobs: PromptLogprobs | null;
  /** Set on the last delta of a choice only. */
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
  tokens: TokenLogprob[];
  ids: number[];
}

const NOTHING = {
  text: '',
  logprobs: null,
  tokenIds: null,
  promptTokenIds: null,
  promptLogprobs: null,
  finish: null,
};

/** Turns generation events into deltas. Holds back tokens whose text is held back, so that both come together. */
export class ChoiceDeltas {
  readonly #answer: AnswerForm;
  /** Candidates per prompt. */
  readonly #candidates: number;
  readonly #pending = new Map<number, Pending>();

  constructor(answer: AnswerForm, candidates: number) {
    this.#answer = answer;
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

  #formatter(start: number): LogprobsFormatter | null {
    const { logprobs, tokensAsIds } = this.#answer;
    return logprobs === null ? null : new LogprobsFormatter({ alternatives: logprobs, tokensAsIds }, start);
  }

  #pendingOf(choice: number): Pending {
    const known = this.#pending.get(choice);
    if (known) return known;
    const pending = { formatter: this.#formatter(0), tokens: [], ids: [] };
    this.#pending.set(choice, pending);
    return pending;
  }

  /** The echoed prompt goes to each of its choices; their own tokens' offsets then start behind it. */
  #prompt(event: EventOf<'prompt'>): readonly ChoiceDelta[] {
    const { echo, echoLast, tokenIds, promptLogprobs: alternatives } = this.#answer;
    if (!echo && !tokenIds && alternatives === null) return [];
    const all = event.tokens ?? [];
    const tokens = echoLast === null ? all : all.slice(Math.max(0, all.length - echoLast));
    const text = !echo ? '' : echoLast === null ? event.text : visibleText(tokens);
    const delta = {
      ...NOTHING,
      text,
      logprobs: echo ? (this.#formatter(0)?.format(tokens) ?? null) : null,
      promptTokenIds: tokenIds ? event.ids : null,
      promptLogprobs: alternatives === null ? null : promptLogprobs(all, alternatives),
    };
    const start = codePointLength(text);
    const deltas = Array.from({ length: this.#candidates }, (_, candidate) => {
      const choice = event.prompt * this.#candidates + candidate;
      this.#pendingOf(choice).formatter = this.#formatter(start);
      return { ...delta, choice };
    });
    // A prompt of special tokens alone shows nothing.
    const shows = text !== '' || delta.logprobs || delta.promptTokenIds || delta.promptLogprobs;
    return shows ? deltas : [];
  }

  #token(event: EventOf<'token'>): readonly ChoiceDelta[] {
    const pending = this.#pendingOf(event.choice);
    for (const token of event.tokens ?? []) pending.tokens.push(token);
    for (const id of event.ids ?? []) pending.ids.push(id);
    if (event.text === '') return [];
    return [{ ...NOTHING, choice: event.choice, text: event.text, ...this.#release(pending) }];
  }

  #finish(event: EventOf<'finish'>): ChoiceDelta {
    const { choice, reason, stopReason, completionTokens } = event;
    const released = this.#release(this.#pendingOf(choice));
    this.#pending.delete(choice);
    const finish = { reason, stopReason: stopReason ?? null, completionTokens, score: event.score ?? 0 };
    return { ...NOTHING, choice, ...released, finish };
  }

  /** What was held back, formatted; null for what was not asked for or is empty. */
  #release(pending: Pending): Pick<ChoiceDelta, 'logprobs' | 'tokenIds'> {
    const { formatter, tokens, ids } = pending;
    pending.tokens = [];
    pending.ids = [];
    return {
      logprobs: formatter !== null && tokens.length > 0 ? formatter.format(tokens) : null,
      tokenIds: this.#answer.tokenIds && ids.length > 0 ? ids : null,
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

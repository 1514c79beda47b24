import type { EventOf, TokenLogprob } from '@continuo/shared/generation.ts';
import { bytesOf, type TokenBytes } from '../../tokenizer/token-bytes.ts';
import { StopChecker, type StopState } from './stop-checker.ts';
import type { SearchTargets } from './text-search.ts';

interface HeldToken {
  readonly id: number;
  readonly logprob: TokenLogprob | null;
  /** Length of the sequence's text before this token. */
  readonly start: number;
}

/** Where an output stands between two tokens. */
export interface OutputState {
  readonly stops: StopState;
  /** Length of the text so far, and of the part of it that stops have released. */
  readonly decoded: number;
  readonly passed: number;
}

interface OutputOptions {
  readonly tokenBytes: TokenBytes;
  readonly stops: SearchTargets;
  readonly includeStop: boolean;
  /** Send ids with the text. */
  readonly tokenIds: boolean;
  /** Send logprobs with the text. */
  readonly logprobs: boolean;
  /** Most tokens per event, each with all of its text; absent = no limit. */
  readonly tokensPerEvent?: number | undefined;
}

/** The text and the tokens of one event. */
interface Part {
  readonly text: string;
  readonly tokens: readonly HeldToken[];
}

interface OutputToken {
  readonly id: number;
  readonly logprob: TokenLogprob | null;
  /** False if the token adds no text. */
  readonly visible: boolean;
  /** True if stop strings may end the text here. */
  readonly armed: boolean;
  /** Bytes at its start that are not part of the text. */
  readonly skip: number;
}

const newDecoder = () => new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Converts one sequence's tokens to text, ids and logprobs that stay in step. A token is sent with the first
 * of its characters that is sent. A token without text is sent with the next text after it.
 */
export class SequenceOutput {
  readonly #options: OutputOptions;
  readonly #checker: StopChecker;
  /** Holds back the bytes of an incomplete character. */
  #decoder = newDecoder();
  /** What stops have released and `take` has not returned, with all tokens since then. */
  #text = '';
  #tokens: HeldToken[] = [];
  /** Code units decoded since the start, and those that `take` has returned. */
  #decoded = 0;
  #taken = 0;
  /** Text from this position on may be taken back, so it is not sent. */
  #heldFrom = Number.POSITIVE_INFINITY;
  /** Completion tokens of the last event. */
  #counted = 0;
  #ended = false;

  constructor(options: OutputOptions) {
    this.#options = options;
    this.#checker = new StopChecker(options.stops, options.includeStop);
  }

  /** The stop string or pattern that ended the text, or null. */
  get stop(): string | null {
    return this.#checker.match;
  }

  /** Length of the text that stops have released. */
  get passed(): number {
    return this.#taken + this.#text.length;
  }

  /** Whether `take` would return text. */
  get hasText(): boolean {
    return Math.min(this.passed, this.#heldFrom) > this.#taken;
  }

  /** Returns the text that the token completes. */
  push({ id, logprob, visible, armed, skip }: OutputToken): string {
    const { tokenBytes, tokenIds, logprobs, tokensPerEvent } = this.#options;
    const sendsTokens = tokenIds || logprobs || tokensPerEvent !== undefined;
    if (sendsTokens) this.#tokens.push({ id, logprob, start: this.#decoded });
    if (!visible) return '';
    const text = this.#decoder.decode(bytesOf(tokenBytes, id).subarray(skip), { stream: true });
    this.#decoded += text.length;
    this.#text += this.#checker.push(text, armed);
    return text;
  }

  /** Ends the sequence: releases all held text, unless a stop string has ended it. */
  end(): void {
    if (this.stop === null) this.#text += this.#checker.flush() + this.#decoder.decode();
    this.#heldFrom = Number.POSITIVE_INFINITY;
    this.#ended = true;
  }

  get state(): OutputState {
    return { stops: this.#checker.state, decoded: this.#decoded, passed: this.passed };
  }

  /** Holds back text from a position on; Infinity = none. */
  hold(from: number): void {
    this.#heldFrom = from;
  }

  /**
   * Takes tokens back. None of their text must have been sent.
   * @param unfinished bytes of a character that was not complete before them
   * @param tokens how many
   */
  restore({ stops, decoded, passed }: OutputState, unfinished: Uint8Array, tokens: number): void {
    this.#checker.state = stops;
    this.#decoder = newDecoder();
    this.#decoder.decode(unfinished, { stream: true });
    this.#decoded = decoded;
    this.#text = this.#text.slice(0, passed - this.#taken);
    this.#tokens.length = Math.max(0, this.#tokens.length - tokens);
  }

  /**
   * Returns what was released since the last call as events. If that is nothing, returns an empty event on
   * request.
   */
  take(choice: number, completionTokens: number, evenIfEmpty: boolean): EventOf<'token'>[] {
    const { logprobs, tokenIds } = this.#options;
    const parts = this.#takeParts();
    if (parts.length === 0 && evenIfEmpty) parts.push({ text: '', tokens: [] });
    let later = parts.reduce((sum, { tokens }) => sum + tokens.length, 0);
    return parts.map(({ text, tokens }) => {
      later -= tokens.length;
      this.#counted = Math.max(this.#counted, completionTokens - later);
      const event: EventOf<'token'> = { type: 'token', choice, text, completionTokens: this.#counted };
      if (logprobs) event.logprobs = tokens.flatMap(({ logprob }) => logprob ?? []);
      if (tokenIds) event.ids = tokens.map(({ id }) => id);
      return event;
    });
  }

  #takeParts(): Part[] {
    const { tokensPerEvent = Number.POSITIVE_INFINITY } = this.#options;
    const released = Math.min(this.passed, this.#heldFrom);
    const held = this.#ended ? -1 : this.#tokens.findIndex(({ start }) => start >= released);
    let ready = held < 0 ? this.#tokens.length : held;
    const parts: Part[] = [];
    while (this.#taken < released || ready > 0) {
      const isLast = ready <= tokensPerEvent;
      if (isLast && !this.#ended && tokensPerEvent < Number.POSITIVE_INFINITY) {
        // A limited event has all text of its tokens.
        if ((this.#tokens[ready]?.start ?? this.#decoded) > released) break;
      }
      const end = isLast ? released : this.#tokens[tokensPerEvent]!.start;
      const text = this.#text.slice(0, end - this.#taken);
      const tokens = this.#tokens.splice(0, Math.min(ready, tokensPerEvent));
      this.#text = this.#text.slice(text.length);
      this.#taken += text.length;
      ready -= tokens.length;
      parts.push({ text, tokens });
    }
    return parts;
  }
}

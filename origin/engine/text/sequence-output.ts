import type { EventOf, TokenLogprob } from '@continuo/shared/generation.ts';
import { bytesOf, type TokenBytes } from '../../tokenizer/token-bytes.ts';
import { StopChecker } from './stop-checker.ts';
import type { SearchTargets } from './text-search.ts';

interface HeldToken {
  readonly id: number;
  readonly logprob: TokenLogprob | null;
  /** Length of the sequence's text before this token. */
  readonly start: number;
}

export interface OutputOptions {
  readonly tokenBytes: TokenBytes;
  readonly stops: SearchTargets;
  readonly includeStop: boolean;
  /** Send ids with the text. */
  readonly tokenIds: boolean;
  /** Send logprobs with the text. */
  readonly logprobs: boolean;
}

/**
 * Converts one sequence's tokens to text, ids and logprobs that stay in step. A token is sent with the first of its
 * characters that is sent. A token without text is sent with the next text after it.
 */
export class SequenceOutput {
  readonly #options: OutputOptions;
  /** Holds back the bytes of an incomplete character. */
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  readonly #checker: StopChecker;
  /** Text to send. */
  #text = '';
  /** Code units decoded since the start, and how many of them were released by the stop checker. */
  #decoded = 0;
  #released = 0;
  #held: HeldToken[] = [];
  #ready: HeldToken[] = [];

  constructor(options: OutputOptions) {
    this.#options = options;
    this.#checker = new StopChecker(options.stops, options.includeStop);
  }

  /** The stop string or pattern that ended the text, or null. */
  get stop(): string | null {
    return this.#checker.match;
  }

  /**
   * @param visible false if the token adds no text
   * @param armed true if stop strings may end the text here
   * @param skip bytes at the token's start that are not part of the text
   */
  push(id: number, logprob: TokenLogprob | null, visible: boolean, armed: boolean, skip = 0): void {
    const { tokenBytes, tokenIds, logprobs } = this.#options;
    const sendsTokens = tokenIds || logprobs;
    if (sendsTokens) this.#held.push({ id, logprob, start: this.#decoded });
    if (!visible) return;
    const decoded = this.#decoder.decode(bytesOf(tokenBytes, id).subarray(skip), { stream: true });
    this.#decoded += decoded.length;
    this.#release(this.#checker.push(decoded, armed));
    if (sendsTokens) this.#releaseTokens();
  }

  /** Ends the sequence: releases all held text, unless a stop string has ended it. */
  end(): void {
    if (this.stop === null) this.#release(this.#checker.flush() + this.#decoder.decode());
    this.#ready.push(...this.#held);
    this.#held = [];
  }

  /** Returns what was released since the last call as an event; null if that is nothing. */
  take(choice: number, completionTokens: number, evenIfEmpty: boolean): EventOf<'token'> | null {
    if (!evenIfEmpty && this.#text === '' && this.#ready.length === 0) return null;
    const event: EventOf<'token'> = { type: 'token', choice, text: this.#text, completionTokens };
    if (this.#options.logprobs) event.logprobs = this.#ready.flatMap(({ logprob }) => logprob ?? []);
    if (this.#options.tokenIds) event.ids = this.#ready.map(({ id }) => id);
    this.#text = '';
    if (this.#ready.length > 0) this.#ready = [];
    return event;
  }

  #release(text: string): void {
    this.#text += text;
    this.#released += text.length;
  }

  #releaseTokens(): void {
    let count = 0;
    while (count < this.#held.length && this.#held[count]!.start < this.#released) count++;
    if (count > 0) this.#ready.push(...this.#held.splice(0, count));
  }
}

import type { EventOf, TokenLogprob } from '../../shared/generation.ts';
import { Utf8Assembler } from '../tokenizer/detokenizer.ts';
import { bytesOf, type TokenBytes } from '../tokenizer/token-bytes.ts';
import { StopChecker, type StopStrings } from './stop-checker.ts';

interface HeldToken {
  readonly id: number;
  readonly entry: TokenLogprob | null;
  /** Length of the sequence's text before this token. */
  readonly start: number;
}

export interface OutputOptions {
  readonly tokenBytes: TokenBytes;
  readonly stops: StopStrings;
  readonly includeStop: boolean;
  /** Send ids with the text. */
  readonly tokenIds: boolean;
  /** Send logprobs with the text. */
  readonly logprobs: boolean;
}

/**
 * Text of one sequence: tokens in; text, ids and logprobs out, in step with each other. A token rides with the first
 * of its characters that is shown; one that gives no text, with the next text after it.
 */
export class SequenceOutput {
  readonly #options: OutputOptions;
  readonly #assembler = new Utf8Assembler();
  readonly #checker: StopChecker;
  #text = '';
  /** Code units decoded, and of these shown, since the start. */
  #decoded = 0;
  #shown = 0;
  #held: HeldToken[] = [];
  #ready: HeldToken[] = [];

  constructor(options: OutputOptions) {
    this.#options = options;
    this.#checker = new StopChecker(options.stops, options.includeStop);
  }

  /** The stop string that ended the text, or null. */
  get stop(): string | null {
    return this.#checker.match;
  }

  /**
   * @param visible false = the token gives no text
   * @param armed stop strings end the text from here on
   */
  push(id: number, entry: TokenLogprob | null, visible: boolean, armed: boolean): void {
    const { tokenBytes, tokenIds, logprobs } = this.#options;
    const riding = tokenIds || logprobs;
    if (riding) this.#held.push({ id, entry, start: this.#decoded });
    if (!visible) return;
    const decoded = this.#assembler.push(bytesOf(tokenBytes, id));
    this.#decoded += decoded.length;
    this.#show(this.#checker.push(decoded, armed));
    if (riding) this.#releaseShown();
  }

  /** No token follows: everything held back is shown, unless a stop string has cut the text. */
  end(): void {
    if (this.stop === null) this.#show(this.#checker.flush() + this.#assembler.end());
    this.#ready.push(...this.#held);
    this.#held = [];
  }

  /** What has become ready since the last call, as an event; null when that is nothing at all. */
  take(choice: number, completionTokens: number, evenIfEmpty: boolean): EventOf<'token'> | null {
    if (!evenIfEmpty && this.#text === '' && this.#ready.length === 0) return null;
    const event: EventOf<'token'> = { type: 'token', choice, text: this.#text, completionTokens };
    if (this.#options.logprobs) event.tokens = this.#ready.flatMap(({ entry }) => entry ?? []);
    if (this.#options.tokenIds) event.ids = this.#ready.map(({ id }) => id);
    this.#text = '';
    if (this.#ready.length > 0) this.#ready = [];
    return event;
  }

  #show(text: string): void {
    this.#text += text;
    this.#shown += text.length;
  }

  #releaseShown(): void {
    let count = 0;
    while (count < this.#held.length && this.#held[count]!.start < this.#shown) count++;
    if (count > 0) this.#ready.push(...this.#held.splice(0, count));
  }
}

import type { EventOf, TokenLogprob } from '@continuo/shared/generation.ts';
import { bytesOf, type TokenBytes } from '../../tokenizer/token-bytes.ts';
import { StopChecker, type StopState } from './stop-checker.ts';
import { type SearchState, type SearchTargets, TextSearch } from './text-search.ts';
import { unfinishedBytes } from './unfinished-bytes.ts';

interface HeldToken {
  readonly id: number;
  readonly logprob: TokenLogprob | null;
  /** Length of the sequence's text before this token. */
  readonly start: number;
}

/** The state before a token that the sequence may return to. */
interface Checkpoint {
  /** Length of the text before the token, and where the first character that begins in it is. */
  readonly start: number;
  readonly begins: number;
  /** Length of the text that stops had released. */
  readonly passed: number;
  readonly stops: StopState;
  readonly banned: SearchState;
  /** Bytes of a character that was not complete. */
  readonly unfinished: Uint8Array;
  readonly tokens: number;
  /** Where a phrase may have begun before the token; Infinity = nowhere. */
  readonly possibleFrom: number;
  readonly undo: () => void;
}

export interface OutputOptions {
  readonly tokenBytes: TokenBytes;
  readonly stops: SearchTargets;
  /** What must not appear in the text. */
  readonly banned: SearchTargets;
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

/** A token for the output. */
export interface OutputToken {
  readonly id: number;
  readonly logprob: TokenLogprob | null;
  /** False if the token adds no text. */
  readonly visible: boolean;
  /** True if stop strings may end the text here. */
  readonly armed: boolean;
  /** Bytes at its start that are not part of the text. */
  readonly skip: number;
  /** Returns the sequence to the state before the token. */
  readonly undo: () => void;
}

const newDecoder = () => new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Converts one sequence's tokens to text, ids and logprobs that stay in step. A token is sent with the first of its
 * characters that is sent. A token without text is sent with the next text after it.
 */
export class SequenceOutput {
  readonly #options: OutputOptions;
  /** Holds back the bytes of an incomplete character. */
  #decoder = newDecoder();
  #unfinished: Uint8Array = new Uint8Array(0);
  readonly #checker: StopChecker;
  readonly #banned: TextSearch;
  /** Tokens that a banned phrase may still begin in, and all tokens after the first of them. */
  #checkpoints: Checkpoint[] = [];
  /** Text to send. */
  #text = '';
  /** Text that stops have released and banned phrases hold back. */
  #waiting = '';
  /** Code units decoded since the start, released by the stop checker, released at all, and taken. */
  #decoded = 0;
  #passed = 0;
  #released = 0;
  #taken = 0;
  /** Completion tokens of the last event. */
  #counted = 0;
  #ended = false;
  #pushed = 0;
  #held: HeldToken[] = [];
  #ready: HeldToken[] = [];

  constructor(options: OutputOptions) {
    this.#options = options;
    this.#checker = new StopChecker(options.stops, options.includeStop);
    this.#banned = new TextSearch(options.banned);
  }

  /** The stop string or pattern that ended the text, or null. */
  get stop(): string | null {
    return this.#checker.match;
  }

  /** Whether the sequence may have to return to an earlier token. */
  get mayReturn(): boolean {
    return this.#checkpoints.length > 0;
  }

  /** Returns true if the token completes a banned phrase: then the token that began it is undone, and all after it. */
  push({ id, logprob, visible, armed, skip, undo }: OutputToken): boolean {
    const { tokenBytes, tokenIds, logprobs, tokensPerEvent } = this.#options;
    const bytes = visible ? bytesOf(tokenBytes, id).subarray(skip) : new Uint8Array(0);
    const isWatched = this.#banned.active && bytes.length > 0;
    if (isWatched) this.#addCheckpoint(undo);
    const sendsTokens = tokenIds || logprobs || tokensPerEvent !== undefined;
    if (sendsTokens) this.#held.push({ id, logprob, start: this.#decoded });
    this.#pushed++;
    if (!visible) return false;
    const decoded = this.#decoder.decode(bytes, { stream: true });
    this.#decoded += decoded.length;
    const passed = this.#checker.push(decoded, armed);
    this.#waiting += passed;
    this.#passed += passed.length;
    if (isWatched) {
      this.#unfinished = unfinishedBytes(this.#unfinished, bytes);
      const match = this.#banned.read(decoded, true);
      if (match !== null && (this.stop === null || match.end <= this.#passed)) {
        this.#return(match.start);
        return true;
      }
      this.#dropCheckpoints();
    }
    this.#release();
    if (sendsTokens) this.#releaseTokens();
    return false;
  }

  /** Ends the sequence: releases all held text, unless a stop string has ended it. */
  end(): void {
    if (this.stop === null) this.#waiting += this.#checker.flush() + this.#decoder.decode();
    this.#text += this.#waiting;
    this.#waiting = '';
    this.#ready.push(...this.#held);
    this.#held = [];
    this.#ended = true;
  }

  /** Returns what was released since the last call as events. If that is nothing, returns an empty event on request. */
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
    const parts: Part[] = [];
    while (this.#text !== '' || this.#ready.length > 0) {
      const end = this.#endOfPart(tokensPerEvent);
      if (end === null) break;
      const text = this.#text.slice(0, end - this.#taken);
      this.#text = this.#text.slice(text.length);
      this.#taken += text.length;
      parts.push({ text, tokens: this.#ready.splice(0, tokensPerEvent) });
    }
    return parts;
  }

  /** Returns where the text of the next tokens ends; null if a part of it is held back, and events are limited. */
  #endOfPart(tokens: number): number | null {
    const next = this.#ready[tokens];
    if (next !== undefined) return next.start;
    if (this.#ended || tokens === Number.POSITIVE_INFINITY) return Number.POSITIVE_INFINITY;
    const end = this.#held[0]?.start ?? this.#decoded;
    return end <= this.#released ? end : null;
  }

  #addCheckpoint(undo: () => void): void {
    this.#checkpoints.push({
      start: this.#decoded,
      begins: this.#decoded + (this.#unfinished.length > 0 ? 1 : 0),
      passed: this.#passed,
      stops: this.#checker.state,
      banned: this.#banned.state,
      unfinished: this.#unfinished,
      tokens: this.#pushed,
      possibleFrom: this.#possibleFrom,
      undo,
    });
  }

  /** Undoes the token in which the character at a position of the text begins. */
  #return(position: number): void {
    const checkpoint = this.#checkpoints.findLast(({ begins }) => begins <= position)!;
    this.#checkpoints = this.#checkpoints.filter(({ tokens }) => tokens < checkpoint.tokens);
    this.#checker.state = checkpoint.stops;
    this.#banned.state = checkpoint.banned;
    this.#unfinished = checkpoint.unfinished;
    this.#decoder = newDecoder();
    this.#decoder.decode(checkpoint.unfinished, { stream: true });
    this.#waiting = this.#waiting.slice(0, checkpoint.passed - this.#released);
    this.#decoded = checkpoint.start;
    this.#passed = checkpoint.passed;
    this.#held.length = Math.max(0, this.#held.length - (this.#pushed - checkpoint.tokens));
    this.#pushed = checkpoint.tokens;
    checkpoint.undo();
  }

  /** Position in the text where a banned phrase may have begun; Infinity if none has. */
  get #possibleFrom(): number {
    const { possibleFrom, at } = this.#banned;
    return possibleFrom < at || this.#unfinished.length > 0 ? possibleFrom : Number.POSITIVE_INFINITY;
  }

  /**
   * Keeps the token in which a phrase may have begun, and those after it. If the sequence returned there, a phrase that had
   * begun before could go on, so the token that it began in is kept as well.
   */
  #dropCheckpoints(): void {
    let first = this.#checkpoints.length;
    for (let from = this.#possibleFrom; from < Number.POSITIVE_INFINITY; ) {
      const began = this.#checkpoints.findLastIndex(({ begins }) => begins <= from);
      if (began >= first) break;
      first = began;
      from = this.#checkpoints[began]!.possibleFrom;
    }
    this.#checkpoints = this.#checkpoints.slice(first);
  }

  /** If the sequence returns to the first checkpoint, a stop may begin in text that was held back there. */
  #release(): void {
    const [first] = this.#checkpoints;
    const end = first === undefined ? this.#passed : Math.min(first.start, first.passed);
    const text = this.#waiting.slice(0, Math.max(0, end - this.#released));
    this.#waiting = this.#waiting.slice(text.length);
    this.#text += text;
    this.#released += text.length;
  }

  #releaseTokens(): void {
    let count = 0;
    while (count < this.#held.length && this.#held[count]!.start < this.#released) count++;
    if (count > 0) this.#ready.push(...this.#held.splice(0, count));
  }
}

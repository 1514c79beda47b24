import type { ServerResponse } from 'node:http';
import { type EventOf, type GenerationEvent, isTerminal } from '../../shared/generation.ts';
import type { Notation } from './notation.ts';

export interface ReaderLimits {
  /**
   * Bytes that may wait for a slow reader. The engine is never paused for one (that would hold a slot), so a reader
   * further behind than this, and the longest write besides (a prompt's logprobs are one), loses its connection, and
   * the generation is aborted. A whole completion usually fits.
   */
  readonly unreadBytes: number;
  /** Milliseconds after the last event within which the reader must have taken the rest. */
  readonly restWithinMs: number;
}

export const READER_LIMITS: ReaderLimits = { unreadBytes: 16 * 2 ** 20, restWithinMs: 60_000 };

/** The events of one generation on an HTTP response. */
export class EventStream {
  readonly #response: ServerResponse;
  readonly #limits: ReaderLimits;
  readonly #notation: Notation;
  /** Events that came before the head was written; null from then on. */
  #early: GenerationEvent[] | null = [];
  readonly #first = Promise.withResolvers<void>();
  #ended = false;
  #longestWrite = 0;

  constructor(response: ServerResponse, notation: Notation, limits: ReaderLimits) {
    this.#response = response;
    this.#notation = notation;
    this.#limits = limits;
  }

  /** True once the terminal event has been written. */
  get ended(): boolean {
    return this.#ended;
  }

  /** The error that has come before anything else, while the head is held back. */
  get failure(): EventOf<'error'> | null {
    const first = this.#early?.[0];
    return first?.type === 'error' ? first : null;
  }

  /** Until an event comes while the head is held back. */
  get first(): Promise<void> {
    return this.#first.promise;
  }

  /** Answers 200 and writes `preamble`, then whatever came early. */
  open(preamble: readonly GenerationEvent[]): void {
    if (this.#response.destroyed) return;
    const { contentType } = this.#notation;
    this.#response.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-store' });
    const events = [...preamble, ...(this.#early ?? [])];
    this.#early = null;
    this.write(events);
  }

  /** One write for all events; ends the response after `done` or `error`. */
  write(events: readonly GenerationEvent[]): void {
    if (this.#early) {
      if (events.length > 0) this.#first.resolve();
      this.#early.push(...events);
      return;
    }
    const response = this.#response;
    if (this.#ended || response.destroyed || events.length === 0) return;
    if (response.writableLength > this.#limits.unreadBytes + this.#longestWrite) {
      response.destroy();
      return;
    }
    const last = events.findIndex(isTerminal);
    const spoken = last < 0 ? events : events.slice(0, last + 1);
    const text = this.#notation.text(spoken);
    this.#longestWrite = Math.max(this.#longestWrite, text.length);
    if (text !== '') response.write(text);
    if (last >= 0) this.#end();
  }

  /**
   * The generation goes on: for a reader that has taken everything else.
   * @returns whether that needed to be said
   */
  beat(): boolean {
    const { destroyed, writableLength } = this.#response;
    if (this.#early || this.#ended || destroyed || writableLength > 0) return false;
    const sign = this.#notation.sign();
    if (sign === '') return false;
    this.#response.write(sign);
    return true;
  }

  #end(): void {
    this.#ended = true;
    const timer = setTimeout(() => this.#response.destroy(), this.#limits.restWithinMs);
    timer.unref();
    this.#response.once('close', () => clearTimeout(timer));
    this.#response.end();
  }
}

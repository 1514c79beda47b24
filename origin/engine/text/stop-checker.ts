import { type SearchState, type SearchTargets, TextSearch } from './text-search.ts';

/** What a checker has read and holds back. */
export interface StopState {
  readonly search: SearchState;
  readonly held: string;
}

/** Searches a growing text for stop strings and patterns. Holds back only text that may belong to one. */
export class StopChecker {
  readonly #search: TextSearch;
  readonly #includeStop: boolean;
  #held = '';
  #match: string | null = null;

  constructor(stops: SearchTargets, includeStop: boolean) {
    this.#search = new TextSearch(stops);
    this.#includeStop = includeStop;
  }

  /** The stop string or pattern that was found, or null. After a match, `push` returns no more text. */
  get match(): string | null {
    return this.#match;
  }

  get state(): StopState {
    return { search: this.#search.state, held: this.#held };
  }

  /** Forgets a match. */
  set state({ search, held }: StopState) {
    this.#search.state = search;
    this.#held = held;
    this.#match = null;
  }

  /**
   * Takes the next piece of text and returns the text that may be sent now. If not `armed` (before
   * min_tokens), a completed stop does not match, but one that begins in the piece may match later.
   */
  push(text: string, armed: boolean): string {
    const search = this.#search;
    if (!search.active || this.#match !== null) return this.#match === null ? text : '';
    const window = this.#held + text;
    const base = search.at - this.#held.length;
    const match = search.read(text, armed);
    if (match !== null) {
      this.#match = match.source;
      this.#held = '';
      return window.slice(0, (this.#includeStop ? match.end : match.start) - base);
    }
    const cut = search.possibleFrom - base;
    this.#held = window.slice(cut);
    return window.slice(0, cut);
  }

  /** Returns the text that is still held back, when the sequence ends for another reason. */
  flush(): string {
    const rest = this.#held;
    this.#held = '';
    return rest;
  }
}

import { type SearchState, type SearchTargets, TextSearch } from './text-search.ts';
import { unfinishedBytes } from './unfinished-bytes.ts';

/** The state before a token that a text may return to. */
interface Checkpoint<State> {
  /** Where the first character that begins in the token is. */
  readonly begins: number;
  readonly search: SearchState;
  /** Bytes of a character that was not complete. */
  readonly unfinished: Uint8Array;
  /** Where a phrase may have begun before the token; Infinity = nowhere. */
  readonly possibleFrom: number;
  /** What the caller keeps of it. */
  readonly state: State;
}

const NO_BYTES: Uint8Array = new Uint8Array(0);

/** Searches a growing text for phrases that must not appear in it, and finds the token in which one began. */
export class BannedPhrases<State> {
  readonly #search: TextSearch;
  /** Bytes at the end of the text of a character that is not complete. */
  #unfinished = NO_BYTES;
  /** Tokens that a phrase may still begin in, and all tokens after the first of them. */
  #checkpoints: Checkpoint<State>[] = [];

  constructor(phrases: SearchTargets) {
    this.#search = new TextSearch(phrases);
  }

  /** The state before the first token that may have to be taken back; null if there is none. */
  get first(): State | null {
    return this.#checkpoints[0]?.state ?? null;
  }

  get unfinished(): Uint8Array {
    return this.#unfinished;
  }

  /**
   * Reads the text of a token. If it completes a phrase, goes back to the token that began it.
   * @param bytes of the token, as far as they are part of the text
   * @param text what they complete
   * @param end only phrases that end before this position count
   * @param state the state before the token
   * @returns the state to go back to; null if no phrase is complete
   */
  read(bytes: Uint8Array, text: string, end: number, state: State): State | null {
    if (!this.#search.active || bytes.length === 0) return null;
    this.#checkpoints.push({
      begins: this.#search.at + (this.#unfinished.length > 0 ? 1 : 0),
      search: this.#search.state,
      unfinished: this.#unfinished,
      possibleFrom: this.#possibleFrom,
      state,
    });
    this.#unfinished = unfinishedBytes(this.#unfinished, bytes);
    const match = this.#search.read(text, true);
    if (match !== null && match.end <= end) return this.#return(match.start);
    this.#dropCheckpoints();
    return null;
  }

  /** Goes back to the token in which the character at a position of the text begins. */
  #return(position: number): State {
    const index = this.#checkpoints.findLastIndex(({ begins }) => begins <= position);
    const { search, unfinished, state } = this.#checkpoints[index]!;
    this.#checkpoints.length = index;
    this.#search.state = search;
    this.#unfinished = unfinished;
    return state;
  }

  /** Position in the text where a phrase may have begun; Infinity if none has. */
  get #possibleFrom(): number {
    const { possibleFrom, at } = this.#search;
    return possibleFrom < at || this.#unfinished.length > 0 ? possibleFrom : Number.POSITIVE_INFINITY;
  }

  /**
   * Keeps the token in which a phrase may have begun, and those after it. If the text returned there, a
   * phrase that had begun before could go on, so the token that it began in is kept as well.
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
}

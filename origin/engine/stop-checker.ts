/** The stop strings of one request with their Knuth–Morris–Pratt failure tables, shared by its sequences. */
export class StopStrings {
  readonly strings: readonly string[];
  /** failures[s][k] = length of the longest proper border of the first k code units of string s. */
  readonly failures: readonly Int32Array[];

  constructor(strings: readonly string[]) {
    // Generated text is well formed, so a lone surrogate never matches. Without it, surrogate pairs are never split.
    this.strings = strings.filter((stop) => stop.length > 0 && stop.isWellFormed());
    this.failures = this.strings.map(failureTable);
  }
}

/**
 * Searches a growing text for stop strings. Holds back only text that may belong to one. If several stop strings match,
 * the one that ends earliest wins, then the one that starts earliest.
 */
export class StopChecker {
  readonly #stops: StopStrings;
  readonly #includeStop: boolean;
  /** matched[s] = length of the longest prefix of string s at the end of the text. */
  readonly #matched: Int32Array;
  #held = '';
  #match: string | null = null;

  constructor(stops: StopStrings, includeStop: boolean) {
    this.#stops = stops;
    this.#includeStop = includeStop;
    this.#matched = new Int32Array(stops.strings.length);
  }

  /** The stop string that was found, or null. After a match, `push` returns no more text. */
  get match(): string | null {
    return this.#match;
  }

  /**
   * Takes the next piece of text and returns the text that may be sent now. If not `armed` (before min_tokens), a
   * completed stop string does not match, but one that begins in the piece may match later.
   */
  push(text: string, armed: boolean): string {
    const { strings } = this.#stops;
    if (strings.length === 0 || this.#match !== null) return this.#match === null ? text : '';
    const window = this.#held + text;
    for (let at = 0; at < text.length; at++) {
      const found = this.#advance(text.charCodeAt(at));
      if (found !== null && armed) {
        this.#match = found;
        this.#held = '';
        const end = window.length - text.length + at + 1;
        return window.slice(0, this.#includeStop ? end : end - found.length);
      }
    }
    let hold = 0;
    for (const length of this.#matched) hold = Math.max(hold, length);
    this.#held = hold === 0 ? '' : window.slice(-hold);
    return hold === 0 ? window : window.slice(0, -hold);
  }

  /** Returns the text that is still held back, when the sequence ends for another reason. */
  flush(): string {
    const rest = this.#held;
    this.#held = '';
    return rest;
  }

  /** Feeds one code unit to every automaton. Returns the longest string that it completes. */
  #advance(unit: number): string | null {
    const { strings, failures } = this.#stops;
    let found: string | null = null;
    for (let s = 0; s < strings.length; s++) {
      const stop = strings[s]!;
      const failure = failures[s]!;
      let length = this.#matched[s]!;
      while (length > 0 && stop.charCodeAt(length) !== unit) length = failure[length]!;
      if (stop.charCodeAt(length) === unit) length++;
      if (length === stop.length) {
        if (found === null || stop.length > found.length) found = stop;
        length = failure[length]!;
      }
      this.#matched[s] = length;
    }
    return found;
  }
}

function failureTable(pattern: string): Int32Array {
  const table = new Int32Array(pattern.length + 1);
  for (let k = 2, length = 0; k <= pattern.length; k++) {
    const unit = pattern.charCodeAt(k - 1);
    while (length > 0 && pattern.charCodeAt(length) !== unit) length = table[length]!;
    if (pattern.charCodeAt(length) === unit) length++;
    table[k] = length;
  }
  return table;
}

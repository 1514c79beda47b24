/** Prompt look-up: the next tokens are guessed to be those that followed the last time the text ended like this. */

/** Longest ending that is looked for; shorter ones only where it has not occurred before. */
const LONGEST_MATCH = 3;

const NONE = new Int32Array(0);

/**
 * @param tokens prompt and output so far
 * @param most tokens to guess
 * @returns `most` tokens after the most recent earlier occurrence of the longest ending that has one; a continuation
 * that reaches the end of the text goes on with itself. Empty when the last token is new.
 */
export function lookUp(tokens: Int32Array, most: number): Int32Array {
  const last = tokens.length - 1;
  let found = -1;
  let longest = 0;
  for (let end = last - 1; end >= 0 && longest < LONGEST_MATCH; end--) {
    let length = 0;
    while (length < LONGEST_MATCH && length <= end && tokens[end - length] === tokens[last - length])
      length++;
    if (length > longest) {
      longest = length;
      found = end;
    }
  }
  if (found < 0) return NONE;
  const period = last - found;
  return Int32Array.from({ length: most }, (_, at) => tokens[found + 1 + (at % period)]!);
}

const SHORTEST_DRAFT = 2;
/** Steps without a guess after a first wrong one, and after many in a row. */
const FIRST_PAUSE = 4;
const LONGEST_PAUSE = 64;

/**
 * How many tokens to guess for one sequence: few at first, then twice as many as were right the last time; and none for
 * a while, twice as long each time, after a guess of which nothing was right.
 */
export class DraftLength {
  readonly #most: number;
  #length: number;
  #misses = 0;
  #pause = 0;

  /** @param most tokens in one draft, at least 1 */
  constructor(most: number) {
    this.#most = most;
    this.#length = Math.min(SHORTEST_DRAFT, most);
  }

  /** To be asked once per step; 0 = not now. */
  next(): number {
    if (this.#pause === 0) return this.#length;
    this.#pause--;
    return 0;
  }

  /** @param accepted how many tokens of a draft were right */
  observe(accepted: number): void {
    if (accepted === 0) this.#pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** this.#misses++);
    else this.#misses = 0;
    this.#length = Math.min(this.#most, Math.max(SHORTEST_DRAFT, 2 * accepted));
  }
}

/** The tokens of one sequence, prompt first, in a buffer of fixed capacity. */
export class TokenHistory {
  /** For loops that read many positions: valid up to `length`, read-only. */
  readonly tokens: Int32Array;
  readonly promptLength: number;
  #used: number;
  /** By window; `push` and `truncate` keep them current. Nearly always none or one. */
  readonly #counters = new Map<number, TokenCounts>();

  /** @param capacity prompt and generated tokens together */
  constructor(prompt: Int32Array, capacity: number) {
    if (capacity < prompt.length) {
      throw new RangeError(`capacity ${capacity} is below the prompt's ${prompt.length} tokens`);
    }
    this.tokens = new Int32Array(capacity);
    this.tokens.set(prompt);
    this.promptLength = prompt.length;
    this.#used = prompt.length;
  }

  get length(): number {
    return this.#used;
  }

  /** The token at position i, 0 ≤ i < length. */
  at(i: number): number {
    if (!(i >= 0 && i < this.#used)) throw new RangeError(`position ${i} outside a history of ${this.#used}`);
    return this.tokens[i]!;
  }

  push(id: number): void {
    if (this.#used === this.tokens.length) throw new RangeError(`history is full at ${this.#used} tokens`);
    this.tokens[this.#used++] = id;
    this.#countLast(1);
  }

  /** Removes the generated tokens from a position on. Costs what they cost, however long the prompt is. */
  truncate(length: number): void {
    for (; this.#used > length; this.#used--) this.#countLast(-1);
  }

  /** Adds the last token to the counts and removes the one that leaves the window, or the other way round. */
  #countLast(change: 1 | -1): void {
    const last = this.#used - 1;
    for (const [window, counts] of this.#counters) {
      counts.add(this.tokens[last]!, change, true);
      const left = last - window;
      if (window >= 0 && left >= 0) counts.add(this.tokens[left]!, -change, left >= this.promptLength);
    }
  }

  /**
   * The occurrences of every token among the last `window` ones (−1 = all). The first call for a window
   * counts it; after that each push costs O(1).
   */
  countsOver(window: number): TokenCounts {
    const counter = this.#counters.get(window);
    if (counter) return counter;
    const counts = new TokenCounts(this.tokens.length);
    for (let i = window < 0 ? 0 : Math.max(0, this.#used - window); i < this.#used; i++) {
      counts.add(this.tokens[i]!, 1, i >= this.promptLength);
    }
    this.#counters.set(window, counts);
    return counts;
  }
}

/**
 * How often each distinct token occurs in a window of one history. The entries are in no order.
 */
class TokenCounts {
  /** Token id of each entry. */
  readonly ids: Int32Array;
  /** Occurrences of each entry in the window, in prompt and generated text together. */
  readonly total: Int32Array;
  /** Occurrences of each entry in the window among generated tokens. */
  readonly generated: Int32Array;
  readonly #entries = new Map<number, number>();

  constructor(capacity: number) {
    this.ids = new Int32Array(capacity);
    this.total = new Int32Array(capacity);
    this.generated = new Int32Array(capacity);
  }

  /** Entries in use. */
  get distinct(): number {
    return this.#entries.size;
  }

  /** Adds `change` (1 or −1) occurrences of a token. */
  add(id: number, change: number, isGenerated: boolean): void {
    let entry = this.#entries.get(id);
    if (entry === undefined) {
      entry = this.distinct;
      this.ids[entry] = id;
      this.#entries.set(id, entry);
    }
    this.total[entry]! += change;
    if (isGenerated) this.generated[entry]! += change;
    if (this.total[entry] === 0) this.#remove(entry);
  }

  /** The last entry takes its place. */
  #remove(entry: number): void {
    const last = this.distinct - 1;
    this.#entries.set(this.ids[last]!, entry).delete(this.ids[entry]!);
    for (const column of [this.ids, this.total, this.generated]) {
      column[entry] = column[last]!;
      column[last] = 0;
    }
  }
}

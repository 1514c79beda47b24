import { TokenCounts } from './token-counts.ts';

/** The tokens of one sequence, prompt first, in a buffer of fixed capacity; append-only. */
export class TokenHistory {
  /** Valid up to `length`; for loops that read many positions. Not to be written. */
  readonly tokens: Int32Array;
  readonly promptLength: number;
  private used: number;
  /** Counters asked for so far, by window; kept current by `push`. Nearly always none or one. */
  private readonly counters = new Map<number, TokenCounts>();

  /** @param capacity prompt and generated tokens together. */
  constructor(prompt: Int32Array, capacity: number) {
    if (capacity < prompt.length) {
      throw new RangeError(`capacity ${capacity} is below the prompt's ${prompt.length} tokens`);
    }
    this.tokens = new Int32Array(capacity);
    this.tokens.set(prompt);
    this.promptLength = prompt.length;
    this.used = prompt.length;
  }

  get length(): number {
    return this.used;
  }

  /** The token at position i, 0 ≤ i < length. */
  at(i: number): number {
    if (!(i >= 0 && i < this.used)) throw new RangeError(`position ${i} outside a history of ${this.used}`);
    return this.tokens[i]!;
  }

  push(id: number): void {
    if (this.used === this.tokens.length) throw new RangeError(`history is full at ${this.used} tokens`);
    this.tokens[this.used++] = id;
    for (const [window, counts] of this.counters) {
      counts.add(id, 1, true);
      const left = this.used - 1 - window;
      if (window >= 0 && left >= 0) counts.add(this.tokens[left]!, -1, left >= this.promptLength);
    }
  }

  /**
   * Occurrences of every token among the last `window` ones (−1 = all). The first call for a window counts it through;
   * from then on each push costs O(1).
   */
  countsOver(window: number): TokenCounts {
    const known = this.counters.get(window);
    if (known) return known;
    const counts = new TokenCounts(this.tokens.length);
    for (let i = window < 0 ? 0 : Math.max(0, this.used - window); i < this.used; i++) {
      counts.add(this.tokens[i]!, 1, i >= this.promptLength);
    }
    this.counters.set(window, counts);
    return counts;
  }
}

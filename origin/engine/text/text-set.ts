/**
 * Texts to search for, as the automaton of Aho and Corasick over UTF-16 code units ("Efficient string
 * matching", CACM 1975). Node 0 is the root. A node stands for the longest end of the text read that begins
 * one of the texts.
 */
export class TextSet {
  /** Well-formed, not empty. */
  readonly texts: readonly string[];
  /** Per node: number of code units that it stands for. */
  readonly depth: Int32Array;
  /** Per node: index of the longest text that ends there; −1 = none does. */
  readonly longest: Int32Array;
  readonly #unit: Uint16Array;
  readonly #firstChild: Int32Array;
  readonly #nextSibling: Int32Array;
  readonly #failure: Int32Array;
  /** Children of the root, which may be many, by code unit. */
  readonly #roots = new Map<number, number>();

  constructor(texts: readonly string[]) {
    // Generated text is well formed, so a lone surrogate never matches. Without it, surrogate pairs are never
    // split.
    this.texts = texts.filter((text) => text.length > 0 && text.isWellFormed());
    const size = 1 + this.texts.reduce((sum, { length }) => sum + length, 0);
    this.depth = new Int32Array(size);
    this.longest = new Int32Array(size).fill(-1);
    this.#unit = new Uint16Array(size);
    this.#firstChild = new Int32Array(size);
    this.#nextSibling = new Int32Array(size);
    this.#failure = new Int32Array(size);
    const count = this.#addTexts();
    this.#addFailures(count);
  }

  get isEmpty(): boolean {
    return this.texts.length === 0;
  }

  /** Returns the node after one more code unit. */
  next(node: number, unit: number): number {
    for (let from = node; ; from = this.#failure[from]!) {
      const child = this.#child(from, unit);
      if (child !== 0 || from === 0) return child;
    }
  }

  /** Returns 0 if there is none. */
  #child(node: number, unit: number): number {
    if (node === 0) return this.#roots.get(unit) ?? 0;
    let child = this.#firstChild[node]!;
    while (child !== 0 && this.#unit[child] !== unit) child = this.#nextSibling[child]!;
    return child;
  }

  /** Returns the number of nodes. */
  #addTexts(): number {
    let count = 1;
    this.texts.forEach((text, index) => {
      let node = 0;
      for (let at = 0; at < text.length; at++) {
        const unit = text.charCodeAt(at);
        let child = this.#child(node, unit);
        if (child === 0) {
          child = count++;
          this.depth[child] = at + 1;
          this.#unit[child] = unit;
          this.#nextSibling[child] = this.#firstChild[node]!;
          this.#firstChild[node] = child;
          if (node === 0) this.#roots.set(unit, child);
        }
        node = child;
      }
      if (this.longest[node] === -1) this.longest[node] = index;
    });
    return count;
  }

  /** Nodes in order of depth, because a failure leads to a smaller depth. */
  #addFailures(count: number): void {
    const queue = new Int32Array(count);
    let end = 1;
    for (let at = 0; at < end; at++) {
      const node = queue[at]!;
      for (let child = this.#firstChild[node]!; child !== 0; child = this.#nextSibling[child]!) {
        const failure = node === 0 ? 0 : this.next(this.#failure[node]!, this.#unit[child]!);
        this.#failure[child] = failure;
        if (this.longest[child] === -1) this.longest[child] = this.longest[failure]!;
        queue[end++] = child;
      }
    }
  }
}

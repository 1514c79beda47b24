import { NO_THREADS, type PatternSet, type Threads } from '@continuo/grammar/runtime/pattern-set.ts';
import type { TextSet } from './text-set.ts';

/** What is searched for: texts and patterns. Shared by the sequences of a request. */
export interface SearchTargets {
  readonly texts: TextSet;
  readonly patterns: PatternSet | null;
  /** Of the patterns, as far as they matter. */
  readonly sources: readonly string[];
}

/** A match in the text that was read, in code units from its start. */
interface TextMatch {
  readonly start: number;
  readonly end: number;
  /** The text or the pattern, as it was given. */
  readonly source: string;
}

/** Where a search stands; immutable. */
export interface SearchState {
  /** Code units read. */
  readonly at: number;
  readonly node: number;
  readonly threads: Threads;
}

const encoder = new TextEncoder();

/**
 * Searches a growing text. The match that ends earliest wins, then the one that starts earliest, then a text
 * before a pattern.
 */
export class TextSearch {
  readonly #texts: TextSet;
  readonly #patterns: PatternSet | null;
  readonly #sources: readonly string[];
  /** False if there is nothing to search for. */
  readonly active: boolean;
  #at = 0;
  #node = 0;
  #threads = NO_THREADS;
  readonly #utf8 = new Uint8Array(4);

  constructor({ texts, patterns, sources }: SearchTargets) {
    this.#texts = texts;
    this.#patterns = patterns;
    this.#sources = sources;
    this.active = !texts.isEmpty || patterns !== null;
  }

  get state(): SearchState {
    return { at: this.#at, node: this.#node, threads: this.#threads };
  }

  set state({ at, node, threads }: SearchState) {
    this.#at = at;
    this.#node = node;
    this.#threads = threads;
  }

  /** Code units read. */
  get at(): number {
    return this.#at;
  }

  /** Position of the earliest code unit that may belong to a match; `at` if there is none. */
  get possibleFrom(): number {
    return Math.min(this.#at - this.#texts.depth[this.#node]!, this.#threads.starts[0] ?? this.#at);
  }

  /**
   * Reads a well-formed text up to the end of the first match, or all of it.
   * @param armed false: what is complete in this text does not match, but what begins in it may match later
   */
  read(text: string, armed: boolean): TextMatch | null {
    for (let index = 0; index < text.length; ) {
      const codePoint = text.codePointAt(index)!;
      const units = codePoint > 0xffff ? 2 : 1;
      for (let i = 0; i < units; i++) {
        this.#node = this.#texts.next(this.#node, text.charCodeAt(index + i));
      }
      if (this.#patterns !== null) this.#advanceThreads(this.#patterns, codePoint);
      index += units;
      this.#at += units;
      const match = armed ? this.#match() : null;
      if (match !== null) return match;
    }
    return null;
  }

  #advanceThreads(patterns: PatternSet, codePoint: number): void {
    if (codePoint < 0x80) {
      this.#threads = patterns.next(this.#threads, codePoint, this.#at);
      return;
    }
    const { written } = encoder.encodeInto(String.fromCodePoint(codePoint), this.#utf8);
    for (let i = 0; i < written; i++) {
      this.#threads = patterns.next(this.#threads, this.#utf8[i]!, i === 0 ? this.#at : -1);
    }
  }

  #match(): TextMatch | null {
    const end = this.#at;
    const { texts, longest } = this.#texts;
    const text = texts[longest[this.#node]!];
    const pattern = this.#patterns?.match(this.#threads) ?? null;
    if (text !== undefined && (pattern === null || end - text.length <= pattern.start)) {
      return { start: end - text.length, end, source: text };
    }
    return pattern && { start: pattern.start, end, source: this.#sources[pattern.pattern] ?? '' };
  }
}

import { ALL_CODE_POINTS } from '../automaton/code-points.ts';
import { determinize } from '../automaton/determinize.ts';
import { complement, type Dfa, intersect, longestText, shortestText, trim } from '../automaton/dfa.ts';
import type { Nfa } from '../automaton/nfa.ts';
import { BudgetExceeded, type WorkBudget } from '../automaton/work-budget.ts';
import { searchAutomaton, wholeMatchAutomaton } from '../regex/regex-automaton.ts';
import { parseRegex } from '../regex/regex-parser.ts';
import { GrammarError, schemaError } from '../rules/grammar-error.ts';
import { CONTENT_ENCODINGS, FORMATS, formatWithin, HOSTNAME_PATTERN, widest } from './formats.ts';

const MAX_STATES = 20_000;

/** Languages of string values (unescaped, without quotes), each built once. */
export class StringLanguages {
  /**
   * Whether formats and encodings have all texts that some validator may accept, and not only those to
   * generate.
   */
  readonly isWide: boolean;
  readonly #budget: WorkBudget;
  readonly #languages = new Map<string, Dfa>();
  readonly #complements = new WeakMap<Dfa, Dfa>();
  readonly #intersections = new WeakMap<Dfa, WeakMap<Dfa, Dfa>>();

  constructor(budget: WorkBudget, isWide = false) {
    this.#budget = budget;
    this.isWide = isWide;
  }

  /** Strings that contain a match of the pattern. */
  pattern(source: string, path: string, maxLength = Number.POSITIVE_INFINITY): Dfa {
    if (source === HOSTNAME_PATTERN && !this.isWide) return this.format('hostname', path, maxLength)!;
    return this.#once(`p${source}`, () => this.#regex(source, path, searchAutomaton));
  }

  /** Returns null for a format that no specification knows. */
  format(name: string, path: string, maxLength = Number.POSITIVE_INFINITY): Dfa | null {
    const short = this.isWide || !FORMATS.has(name) ? undefined : formatWithin(name, maxLength);
    return this.#whole(name, FORMATS, path, short);
  }

  /** Returns null for a `contentEncoding` that is unknown or allows all texts. */
  encoding(name: string, path: string): Dfa | null {
    return this.#whole(name, CONTENT_ENCODINGS, path);
  }

  #whole(name: string, formats: ReadonlyMap<string, string>, path: string, short?: string): Dfa | null {
    const source = this.isWide ? widest(name, formats) : (short ?? formats.get(name));
    return source === undefined
      ? null
      : this.#once(`w${source}`, () => this.#regex(source, path, wholeMatchAutomaton));
  }

  /**
   * Strings of `min` to `max` code points; none if `max` is negative, as the negation of a minimum of 0 makes
   * it.
   */
  length(min: number, max: number): Dfa {
    return this.#once(`l${min},${max}`, () => {
      const last = Number.isFinite(max) ? Math.max(0, max) : min;
      this.#budget.spend(10 * last);
      const edges = Array.from({ length: last + 1 }, (_, count) => {
        if (count === last && Number.isFinite(max)) return [];
        const next = Math.min(count + 1, last);
        return [
          ALL_CODE_POINTS[0]!,
          ALL_CODE_POINTS[1]!,
          next,
          ALL_CODE_POINTS[2]!,
          ALL_CODE_POINTS[3]!,
          next,
        ];
      });
      return { edges, final: Uint8Array.from(edges, (_, count) => (count >= min && count <= max ? 1 : 0)) };
    });
  }

  /** The language that consists of the texts. */
  anyOf(texts: readonly string[]): Dfa {
    return this.#once(`t${JSON.stringify(texts)}`, () => this.#trie(texts));
  }

  #trie(texts: readonly string[]): Dfa {
    const edges: Map<number, number>[] = [new Map()];
    const final: number[] = [0];
    for (const value of texts) {
      let state = 0;
      for (const char of value) {
        this.#budget.spend(20);
        const codePoint = char.codePointAt(0)!;
        let next = edges[state]!.get(codePoint);
        if (next === undefined) {
          next = edges.push(new Map()) - 1;
          final.push(0);
          edges[state]!.set(codePoint, next);
        }
        state = next;
      }
      final[state] = 1;
    }
    const sorted = edges.map((map) => [...map].sort((a, b) => a[0] - b[0]).flatMap(([c, to]) => [c, c, to]));
    return { edges: sorted, final: Uint8Array.from(final) };
  }

  /** The texts of a language with `min` to `max` code points. */
  withLengths(language: Dfa, min: number, max: number): Dfa {
    const isShort = max === Number.POSITIVE_INFINITY || longestText(language) <= max;
    if (isShort && (min === 0 || shortestText(language) >= min)) return language;
    return this.both(language, this.length(min, max));
  }

  not(language: Dfa): Dfa {
    return getOrMake(this.#complements, language, () => {
      this.#budget.spend(10 * language.edges.length);
      return complement(language);
    });
  }

  both(a: Dfa, b: Dfa): Dfa {
    const intersections = getOrMake(this.#intersections, a, () => new WeakMap<Dfa, Dfa>());
    return getOrMake(intersections, b, () => intersect(a, b, this.#budget));
  }

  #regex(
    source: string,
    path: string,
    automatonOf: (node: ReturnType<typeof parseRegex>, budget: WorkBudget) => Nfa,
  ): Dfa {
    try {
      const nfa = automatonOf(parseRegex(source, this.#budget), this.#budget);
      const dfa = determinize(nfa, { budget: this.#budget, maxStates: MAX_STATES, nonEmpty: false });
      if (dfa === null) throw new BudgetExceeded();
      return trim(dfa);
    } catch (error) {
      if (error instanceof GrammarError) throw schemaError(path, error.message);
      if (error instanceof BudgetExceeded)
        throw schemaError(path, 'the pattern needs too much work; simplify it');
      throw error;
    }
  }

  #once(key: string, make: () => Dfa): Dfa {
    this.#budget.spend(key.length);
    return getOrMake(this.#languages, key, make);
  }
}

interface Cache<Key, Value> {
  get(key: Key): Value | undefined;
  set(key: Key, value: Value): unknown;
}

function getOrMake<Key, Value>(cache: Cache<Key, Value>, key: Key, make: () => Value): Value {
  const cached = cache.get(key);
  if (cached !== undefined) return cached;
  const made = make();
  cache.set(key, made);
  return made;
}

import { ALL_CODE_POINTS } from '../automaton/code-points.ts';
import { determinize } from '../automaton/determinize.ts';
import { complement, type Dfa, intersect, trim } from '../automaton/dfa.ts';
import type { Nfa } from '../automaton/nfa.ts';
import { GrammarError, schemaError } from '../grammar-error.ts';
import { searchAutomaton, wholeMatchAutomaton } from '../regex/regex-automaton.ts';
import { parseRegex } from '../regex/regex-parser.ts';
import { BudgetExceeded, type WorkBudget } from '../work-budget.ts';
import { FORMATS } from './formats.ts';

const MAX_STATES = 20_000;

/** Languages of string values (unescaped, without quotes), each built once. */
export class StringLanguages {
  readonly #budget: WorkBudget;
  readonly #known = new Map<string, Dfa>();

  constructor(budget: WorkBudget) {
    this.#budget = budget;
  }

  /** Strings that contain a match of the pattern. */
  pattern(source: string, path: string): Dfa {
    const split = leadingLookaheads(source);
    if (split === null) return this.#once(`p${source}`, () => this.#regex(source, path, searchAutomaton));
    return this.#once(`p${source}`, () =>
      split.lookaheads.reduce(
        (language, { source: inner, negative }) => {
          const found = this.pattern(`^(?:${inner})`, path);
          return this.both(language, negative ? this.not(found) : found);
        },
        this.pattern(`^${split.rest}`, path),
      ),
    );
  }

  /** Returns null for a format that no specification knows. */
  format(name: string, path: string): Dfa | null {
    const source = FORMATS.get(name);
    return source === undefined
      ? null
      : this.#once(`f${name}`, () => this.#regex(source, path, wholeMatchAutomaton));
  }

  /** Strings of `min` to `max` code points. */
  length(min: number, max: number): Dfa {
    return this.#once(`l${min},${max}`, () => {
      const last = Number.isFinite(max) ? max : min;
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
      return { edges, final: Uint8Array.from(edges, (_, count) => (count >= min ? 1 : 0)) };
    });
  }

  /** The language that consists of the texts. */
  anyOf(texts: readonly string[]): Dfa {
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

  not(language: Dfa): Dfa {
    this.#budget.spend(10 * language.edges.length);
    return complement(language);
  }

  both(a: Dfa, b: Dfa): Dfa {
    return intersect(a, b, this.#budget);
  }

  #regex(
    source: string,
    path: string,
    automatonOf: (node: ReturnType<typeof parseRegex>, budget: WorkBudget) => Nfa,
  ): Dfa {
    try {
      const nfa = automatonOf(parseRegex(source, this.#budget), this.#budget);
      const dfa = determinize(nfa, { budget: this.#budget, maxStates: MAX_STATES, nonEmpty: false });
      if (dfa === null) throw new BudgetExceeded('The pattern');
      return trim(dfa);
    } catch (error) {
      if (error instanceof GrammarError) throw schemaError(path, error.message);
      if (error instanceof BudgetExceeded)
        throw schemaError(path, 'the pattern needs too much work; simplify it');
      throw error;
    }
  }

  #once(key: string, make: () => Dfa): Dfa {
    const known = this.#known.get(key);
    if (known) return known;
    const built = make();
    this.#known.set(key, built);
    return built;
  }
}

/** A pattern that must match, or must not match, at the start of a text. */
interface Lookahead {
  readonly source: string;
  readonly negative: boolean;
}

/**
 * Splits look-aheads off the start of a pattern that begins with `^`. All of them look from the start of the text, so
 * each is a separate pattern. Returns null if there are none, or if they belong to one of several alternatives.
 */
function leadingLookaheads(pattern: string): { lookaheads: readonly Lookahead[]; rest: string } | null {
  const lookaheads: Lookahead[] = [];
  let at = 1;
  while (/^\(\?[=!]/.test(pattern.slice(at, at + 3))) {
    const end = endOf(pattern, at + 3, ')');
    lookaheads.push({ source: pattern.slice(at + 3, end), negative: pattern[at + 2] === '!' });
    at = end + 1;
  }
  const isWhole = pattern.startsWith('^') && endOf(pattern, at, '|') >= pattern.length;
  return lookaheads.length > 0 && isWhole ? { lookaheads, rest: pattern.slice(at) } : null;
}

/** The index of a character from `start` outside of groups, classes and escapes; the length if there is none. */
function endOf(pattern: string, start: number, char: string): number {
  let open = 0;
  let inClass = false;
  let at = start;
  for (; at < pattern.length; at++) {
    const found = pattern[at]!;
    if (found === char && open === 0 && !inClass) return at;
    if (found === '\\') at++;
    else if (found === '[') inClass = true;
    else if (found === ']') inClass = false;
    else if (found === '(' && !inClass) open++;
    else if (found === ')' && !inClass) open--;
  }
  return at;
}

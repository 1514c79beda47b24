import { codePoints } from '../automaton/code-points.ts';
import { determinize } from '../automaton/determinize.ts';
import { complement, type Dfa, intersect, trim } from '../automaton/dfa.ts';
import type { WorkBudget } from '../automaton/work-budget.ts';
import { bothCases } from '../regex/character-sets.ts';
import type { Surroundings } from '../regex/look-around.ts';
import { wholeMatchAutomaton } from '../regex/regex-automaton.ts';
import { parseRegex, type RegexNode } from '../regex/regex-parser.ts';
import { GrammarError, syntaxError } from '../rules/grammar-error.ts';
import { isTerminal, type LarkDefinition, type LarkGrammar, type LarkNode } from './lark-grammar.ts';
import { cutAtMatch, shortestMatches, withoutStop } from './lazy-languages.ts';
import { substringAutomaton } from './substring.ts';

/** Text surrounds a terminal, and its `^` and `$` stand for its own ends. */
export const IN_TEXT: Surroundings = { before: 'anything', ends: false, anchored: true };

const MAX_STATES = 20_000;

/** The terminals of a grammar as regular expressions. */
export class Terminals {
  readonly #source: string;
  readonly #definitions: LarkGrammar['definitions'];
  readonly #budget: WorkBudget;
  readonly #expressions = new Map<string, RegexNode>();
  /** Names of the terminals that are being built. */
  readonly #open = new Set<string>();
  readonly #lazy = new Map<LarkDefinition, Dfa>();
  readonly #nullable = new Map<LarkNode, boolean>();

  constructor(source: string, definitions: LarkGrammar['definitions'], budget: WorkBudget) {
    this.#source = source;
    this.#definitions = definitions;
    this.#budget = budget;
  }

  named(name: string, offset: number): RegexNode {
    const cached = this.#expressions.get(name);
    if (cached) return cached;
    const definition = this.#definitions.get(name);
    if (!definition) throw this.#error(offset, `"${name}" is used but not defined`);
    if (this.#open.has(name)) throw this.#error(definition.offset, `The terminal "${name}" refers to itself`);
    this.#open.add(name);
    const regex = this.of(definition.body);
    this.#open.delete(name);
    this.#expressions.set(name, regex);
    return regex;
  }

  /** @throws GrammarError if the node contains rules or anything else that is no part of a terminal */
  of(node: LarkNode): RegexNode {
    this.#budget.spend(20);
    switch (node.kind) {
      case 'name':
        if (!isTerminal(node.name)) throw this.#error(node.offset, 'A terminal cannot contain rules');
        return this.named(node.name, node.offset);
      case 'string':
        return {
          kind: 'sequence',
          items: Array.from(node.value, (char) => {
            const set = codePoints([[char.codePointAt(0)!, char.codePointAt(0)!]]);
            return { kind: 'chars', set: node.ignoreCase ? bothCases(set, this.#budget) : set };
          }),
        };
      case 'regex':
        return this.#regex(node);
      case 'range':
        return { kind: 'chars', set: codePoints([[node.from, node.to]]) };
      case 'substring':
        return { kind: 'automaton', automaton: substringAutomaton(node.chunks, this.#budget) };
      case 'sequence':
      case 'choice':
        return { kind: node.kind, items: node.items.map((item) => this.of(item)) };
      case 'repeat':
        return { ...node, item: this.of(node.item) };
      case 'and': {
        const [first, ...others] = node.items.map((item) => this.#dfa(this.of(item)));
        const both = (a: Dfa, b: Dfa): Dfa => intersect(a, b, this.#budget);
        return { kind: 'automaton', automaton: others.reduce(both, first!) };
      }
      case 'not':
        return { kind: 'automaton', automaton: complement(this.#dfa(this.of(node.item))) };
      default:
        throw this.#error(node.offset, `${NAMES[node.kind]} cannot be a part of a terminal`);
    }
  }

  /** The texts of a lazy rule. */
  lazy(definition: LarkDefinition): Dfa {
    let language = this.#lazy.get(definition);
    if (language === undefined) {
      const { end, isStop } = definition.lazy!;
      const body = this.of(definition.body);
      const items = end === null ? [body] : [body, this.of(end)];
      const whole = shortestMatches(this.#dfa({ kind: 'sequence', items }));
      language =
        isStop && end !== null
          ? withoutStop(whole, this.#dfa(body), this.#dfa(this.of(end)), this.#budget)
          : whole;
      this.#lazy.set(definition, language);
    }
    return language;
  }

  /** The texts of a terminal or lazy rule that could not end as a lazy rule before. */
  cut(occurrence: LarkNode | LarkDefinition, rivals: Iterable<LarkDefinition>): Dfa {
    const isLazy = 'body' in occurrence;
    let language = isLazy ? this.lazy(occurrence) : this.#dfa(this.of(occurrence));
    for (const rival of rivals) {
      const ends = this.lazy(rival);
      // A rule that may be empty would exclude all other text.
      if (ends.final[0] === 0) language = cutAtMatch(language, ends, isLazy, this.#budget);
    }
    return language;
  }

  /** Whether a terminal may be empty. */
  mayBeEmpty(node: LarkNode): boolean {
    const isNullable = this.#nullable.get(node) ?? this.#dfa(this.of(node)).final[0] === 1;
    this.#nullable.set(node, isNullable);
    return isNullable;
  }

  #dfa(node: RegexNode): Dfa {
    const nfa = wholeMatchAutomaton(node, this.#budget, IN_TEXT);
    const dfa = determinize(nfa, { budget: this.#budget, maxStates: MAX_STATES, nonEmpty: false });
    if (dfa === null) throw new GrammarError(`A terminal needs more than ${MAX_STATES} states; simplify it`);
    return trim(dfa);
  }

  #regex({ source, flags, offset }: LarkNode & { readonly kind: 'regex' }): RegexNode {
    const unknown = /[^imsu]/.exec(flags)?.[0];
    if (unknown !== undefined) throw this.#error(offset, `The flag "${unknown}" is not supported`);
    const options = {
      ignoreCase: flags.includes('i'),
      dotAll: flags.includes('s'),
      multiline: flags.includes('m'),
    };
    const errorAt = (inner: number, message: string): GrammarError => this.#error(offset + inner, message);
    return parseRegex(source, this.#budget, options, errorAt);
  }

  #error(offset: number, message: string): GrammarError {
    return syntaxError(this.#source, offset, message);
  }
}

const NAMES = {
  token: 'A token',
  grammar: 'A grammar',
  lark: '%lark',
  json: '%json',
} as const;

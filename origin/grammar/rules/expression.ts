import type { CodePoints } from '../automaton/code-points.ts';
import { pathOfName } from '../automaton/token-path.ts';

/**
 * The right-hand side of a grammar rule, over bytes, code points and rules. Every front end produces it. Text
 * is UTF-8.
 */
export type Expression =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  /** Matches one code point of the set. */
  | { readonly kind: 'chars'; readonly set: CodePoints }
  | { readonly kind: 'sequence'; readonly items: readonly Expression[] }
  /** Matches one of the items. A choice without items matches nothing. */
  | { readonly kind: 'choice'; readonly items: readonly Expression[] }
  /** `max` may be Infinity. */
  | { readonly kind: 'repeat'; readonly item: Expression; readonly min: number; readonly max: number }
  | RuleReference
  /** Matches one token of these ids, as ranges [lo0, hi0, lo1, hi1, …], whatever its text. */
  | { readonly kind: 'tokens'; readonly ids: readonly number[] }
  | Graph
  | AnyOrder;

export interface RuleReference {
  readonly kind: 'rule';
  readonly rule: number;
}

/** A finite automaton whose edges are expressions. State 0 is the start; `final` is the only final state. */
export interface Graph {
  readonly kind: 'graph';
  readonly states: number;
  readonly edges: readonly GraphEdge[];
  readonly final: number;
}

export interface GraphEdge {
  readonly from: number;
  readonly to: number;
  readonly label: Expression;
}

/**
 * Members in any order with separators in between, each at most once; never the empty text. It must be the
 * whole right-hand side of a rule. Its automaton has a state per set of members, which the runtime creates
 * when a text reaches it.
 */
export interface AnyOrder extends OrderedRules {
  readonly kind: 'anyOrder';
}

/** The rules that an `AnyOrder` calls. */
export interface OrderedRules {
  readonly members: readonly { readonly rule: number; readonly required: boolean }[];
  /** The rule of further members, of which any number may be written anywhere; null if there are none. */
  readonly additional: number | null;
  readonly separator: number;
  /** Least and most members written. */
  readonly min: number;
  readonly max: number;
}

/** Rule i is `rules[i]`. The text must match `rules[root]`. */
export interface Grammar {
  readonly rules: readonly Expression[];
  readonly root: number;
  /** Keywords of its schemas that are not enforced because no specification knows them. */
  readonly ignoredKeywords?: readonly string[];
  /** Names of the tokens that it refers to. */
  readonly tokenNames?: readonly string[];
  /**
   * Rules of JSON arrays whose items must differ, and of objects whose keys must. The rules do not say so;
   * the runtime refuses repeated ones.
   */
  readonly distinctRules?: ReadonlySet<number>;
}

export const EMPTY: Expression = { kind: 'sequence', items: [] };
export const NOTHING: Expression = { kind: 'choice', items: [] };

const encoder = new TextEncoder();

export function text(value: string): Expression {
  return { kind: 'bytes', bytes: encoder.encode(value) };
}

export function chars(set: CodePoints): Expression {
  return { kind: 'chars', set };
}

export function sequence(...items: readonly Expression[]): Expression {
  return items.length === 1 ? items[0]! : { kind: 'sequence', items };
}

export function choice(items: readonly Expression[]): Expression {
  return items.length === 1 ? items[0]! : { kind: 'choice', items };
}

export function repeat(item: Expression, min: number, max: number): Expression {
  return { kind: 'repeat', item, min, max };
}

export function optional(item: Expression): Expression {
  return repeat(item, 0, 1);
}

export function rule(index: number): RuleReference {
  return { kind: 'rule', rule: index };
}

/** Collects the rules of a grammar. A rule may be referenced before it is defined. */
export class GrammarBuilder {
  readonly ignoredKeywords = new Set<string>();
  readonly distinctRules = new Set<number>();
  readonly #tokenNames = new Set<string>();
  readonly #rules: Expression[] = [];

  /** Reserves a rule. It matches nothing until `define` is called. */
  declare(): number {
    return this.#rules.push(NOTHING) - 1;
  }

  define(index: number, expression: Expression): void {
    this.#rules[index] = expression;
  }

  expression(index: number): Expression {
    return this.#rules[index]!;
  }

  add(expression: Expression): RuleReference {
    const index = this.declare();
    this.define(index, expression);
    return rule(index);
  }

  /** Matches the special token of this name, such as `<|end|>`. */
  token(name: string): Expression {
    this.#tokenNames.add(name);
    return { kind: 'bytes', bytes: pathOfName(name) };
  }

  build(root: number): Grammar {
    return {
      rules: this.#rules,
      root,
      ignoredKeywords: [...this.ignoredKeywords],
      tokenNames: [...this.#tokenNames],
      distinctRules: this.distinctRules,
    };
  }
}

import type { Dfa } from '../automaton/dfa.ts';
import type { WorkBudget } from '../automaton/work-budget.ts';
import type { Expression, RuleReference } from '../rules/expression.ts';
import type { Conjunction } from './conjunction.ts';
import type { JsonRules } from './json-rules.ts';
import type { SchemaDocument } from './schema-document.ts';
import type { StringLanguages } from './string-language.ts';

/** How objects are generated where a schema leaves it open. */
export interface ObjectStyle {
  /** A schema that does not mention `additionalProperties` allows other properties than those it declares. */
  readonly openObjects?: boolean | undefined;
  /** Declared properties may come in any order. */
  readonly anyKeyOrder?: boolean | undefined;
}

/** What decides whether a value is valid. */
export interface ValidationContext {
  readonly document: SchemaDocument;
  readonly languages: StringLanguages;
  readonly budget: WorkBudget;
  /** Whether a list of a schema contains an equal value. */
  readonly isIn: (list: readonly unknown[], value: unknown) => boolean;
  /** For what must not be valid: reads formats as widely as any validator, or again as they are generated. */
  readonly opposite: ValidationContext;
}

/** State shared by the parts of the schema compiler. */
export interface SchemaContext extends ValidationContext {
  readonly json: JsonRules;
  readonly style: ObjectStyle;
  /** Returns the rule for the values of a conjunction. */
  ruleFor(conjunction: Conjunction): RuleReference;
  /** Returns all values that satisfy a conjunction, if its schemas list them; else null. */
  listedValues(conjunction: Conjunction): readonly unknown[] | null;
  /** Returns the rule for the JSON strings whose value is in a language. */
  stringIn(language: Dfa): RuleReference;
  /** Whether two conjunctions are certainly disjoint, by their keys and depth. */
  readonly disjoint: Map<string, boolean>;
  /** Adds a rule for arrays whose items, or objects whose keys, the runtime keeps different. */
  withDistinct(expression: Expression): Expression;
  /**
   * Returns the JSON strings whose text is JSON of a conjunction.
   * @param path for errors
   */
  textOf(conjunction: Conjunction, path: string): Expression;
  /** Adds a rule, or returns the one of this name. */
  sharedRule(name: string, make: () => Expression): number;
  /** Adds a rule. */
  readonly addRule: (expression: Expression) => number;
}

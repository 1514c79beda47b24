import type { Dfa } from '../automaton/dfa.ts';
import type { WorkBudget } from '../automaton/work-budget.ts';
import { canonical, parseJson } from '../rules/exact-json.ts';
import {
  choice,
  type Expression,
  type Grammar,
  GrammarBuilder,
  NOTHING,
  type RuleReference,
  rule,
  sequence,
  text,
} from '../rules/expression.ts';
import { schemaError } from '../rules/grammar-error.ts';
import { arrayExpression } from './array-schema.ts';
import { enumeratedValues, numberAssertions, typesOf } from './assertions.ts';
import {
  type Conjunction,
  conjunctionKey,
  conjunctionOf,
  type KeywordNodes,
  simplified,
} from './conjunction.ts';
import { areDisjoint } from './disjointness.ts';
import { escapedExpression, escapedTexts } from './escaped-string.ts';
import { type Alternatives, branchesOf, expand, isScope } from './expansion.ts';
import { JsonRules } from './json-rules.ts';
import { numberExpression } from './number-schema.ts';
import { objectExpression } from './object-schema.ts';
import type { ObjectStyle, SchemaContext, ValidationContext } from './schema-context.ts';
import { SchemaDocument } from './schema-document.ts';
import { satisfies } from './schema-validator.ts';
import { StringLanguages } from './string-language.ts';
import { stringExpression } from './string-schema.ts';
import { rivalsByTag } from './tagged-branches.ts';

/** The JSON texts whose value satisfies a schema (draft 4 to 2020-12). The schema may be JSON text. */
export function jsonSchemaGrammar(schema: unknown, budget: WorkBudget, style: ObjectStyle = {}): Grammar {
  const builder = new GrammarBuilder();
  const root = builder.declare();
  builder.define(root, jsonSchemaExpression(schema, builder, budget, style));
  return builder.build(root);
}

/** Like `jsonSchemaGrammar`, as a part of another grammar. Whitespace may precede the value. */
export function jsonSchemaExpression(
  schema: unknown,
  builder: GrammarBuilder,
  budget: WorkBudget,
  style: ObjectStyle = {},
): Expression {
  const value = typeof schema === 'string' ? parseJson(schema, 'The schema') : schema;
  const document = new SchemaDocument(value, builder.ignoredKeywords);
  const compiler = new SchemaCompiler(document, builder, budget, style);
  return sequence(compiler.json.space, compiler.compile());
}

class SchemaCompiler implements SchemaContext {
  readonly document: SchemaDocument;
  readonly json: JsonRules;
  readonly languages: StringLanguages;
  readonly opposite: ValidationContext;
  readonly budget: WorkBudget;
  readonly style: ObjectStyle;
  readonly disjoint = new Map<string, boolean>();
  readonly #builder: GrammarBuilder;
  /** The canonical texts of lists, which may be long. */
  readonly #lists = new Map<readonly unknown[], ReadonlySet<string>>();
  readonly #rules = new Map<string, number>();
  readonly #shared = new Map<string, number>();
  readonly #strings = new WeakMap<Dfa, number>();
  /** Rules for the texts of other rules within strings. */
  readonly #escaped = new Map<
    number,
    { readonly rule: number; readonly of: number; readonly path: string }
  >();
  readonly #queue: { readonly rule: number; readonly conjunction: Conjunction }[] = [];

  constructor(document: SchemaDocument, builder: GrammarBuilder, budget: WorkBudget, style: ObjectStyle) {
    this.document = document;
    this.json = new JsonRules(builder);
    this.languages = new StringLanguages(budget);
    const wide = new StringLanguages(budget, true);
    this.opposite = { document, budget, languages: wide, isIn: this.isIn, opposite: this };
    this.budget = budget;
    this.style = style;
    this.#builder = builder;
  }

  compile(): Expression {
    const root = this.ruleFor(conjunctionOf(this.document.root));
    // A queue instead of recursion, because schemas may be deep and refer to themselves.
    for (let next = this.#queue.pop(); next !== undefined; next = this.#queue.pop()) {
      this.#builder.define(next.rule, this.#expression(next.conjunction));
    }
    // In this order, because the text of a string may contain strings that hold JSON.
    for (const { rule: escaped, of, path } of this.#escaped.values()) {
      this.budget.spend(100);
      if (this.#builder.distinctRules.has(of))
        throw schemaError(path, 'the contents of a string cannot have items or keys that must differ');
      this.#builder.define(
        escaped,
        escapedTexts(this.#builder.expression(of), (inner) => this.#escapedRule(inner, path)),
      );
    }
    return root;
  }

  textOf(conjunction: Conjunction, path: string): Expression {
    const value = this.addRule(this.ruleFor(conjunction));
    return this.json.stringOf(rule(this.#escapedRule(value, path)));
  }

  stringIn(language: Dfa): RuleReference {
    const index =
      this.#strings.get(language) ??
      this.addRule(this.json.stringOf(escapedExpression(language, this.addRule)));
    this.#strings.set(language, index);
    return rule(index);
  }

  #escapedRule(of: number, path: string): number {
    const cached = this.#escaped.get(of);
    if (cached) return cached.rule;
    const escaped = this.#builder.declare();
    this.#escaped.set(of, { rule: escaped, of, path });
    return escaped;
  }

  ruleFor(conditions: Conjunction): RuleReference {
    const conjunction = simplified(conditions);
    const key = conjunctionKey(conjunction);
    let index = this.#rules.get(key);
    if (index === undefined) {
      this.budget.spend(100 + key.length);
      index = this.#builder.declare();
      this.#rules.set(key, index);
      this.#queue.push({ rule: index, conjunction });
    }
    return rule(index);
  }

  withDistinct(expression: Expression): Expression {
    const index = this.addRule(expression);
    this.#builder.distinctRules.add(index);
    return rule(index);
  }

  sharedRule(name: string, make: () => Expression): number {
    const index = this.#shared.get(name) ?? this.addRule(make());
    this.#shared.set(name, index);
    return index;
  }

  readonly addRule = (expression: Expression): number => {
    const index = this.#builder.declare();
    this.#builder.define(index, expression);
    return index;
  };

  #expression(conjunction: Conjunction): Expression {
    const expanded = expand(conjunction, this.document);
    if (expanded.impossible) return NOTHING;
    const values = this.listedValues(conjunction);
    if (values !== null) return choice(values.map((value) => this.json.literal(value)));
    // What a branch evaluates decides what `unevaluatedProperties` and `unevaluatedItems` beside it demand.
    const decided = expanded.nodes.filter(({ schema }) => !isScope(schema));
    const keywords = decided.map((node) => ({ node, part: 'keywords' as const }));
    const contradicts = (branch: Conjunction): boolean =>
      keywords.length > 0 && areDisjoint(keywords, branch, this);
    // What the keywords beside a `not` exclude need not be excluded again.
    const open = expanded.alternatives.filter(
      ({ part, node }) => part !== 'not' || !contradicts(conjunctionOf(node)),
    );
    const alternatives = open[0];
    if (alternatives === undefined) return this.#leaf(expanded.nodes);
    // Without this, n conditions on one property would have 2^n combinations instead of n + 1.
    const isPossible = (branch: Conjunction): boolean =>
      alternatives.part === 'oneOf' || !contradicts(branch);
    const rivalsOf = (list: readonly Conjunction[]) => rivalsByTag(list, this);
    const rest = { ...expanded, alternatives: open };
    const branches = branchesOf(rest, alternatives, this.document, isPossible, rivalsOf);
    const exclusive = alternatives.part === 'oneOf' ? this.#excludeOthers(branches, alternatives) : branches;
    return choice(exclusive.map((branch) => this.ruleFor(branch)));
  }

  /** Adds to each branch of a `oneOf` that the others do not hold, as far as they are not disjoint anyway. */
  #excludeOthers(branches: readonly Conjunction[], { node, scopes }: Alternatives): readonly Conjunction[] {
    const rivals = rivalsByTag(branches, this);
    return branches.map((branch, i) => [
      ...branch,
      ...rivals[i]!.flatMap((j) => {
        const isApart = scopes === undefined && areDisjoint(branch, branches[j]!, this);
        return isApart ? [] : [{ node: this.document.child(node, 'oneOf', j), part: 'not' as const }];
      }),
    ]);
  }

  readonly isIn = (list: readonly unknown[], value: unknown): boolean => {
    const set = this.#lists.get(list) ?? new Set(list.map(canonical));
    this.#lists.set(list, set);
    return set.has(canonical(value));
  };

  listedValues(conjunction: Conjunction): readonly unknown[] | null {
    const { impossible, nodes } = expand(conjunction, this.document);
    if (impossible) return [];
    return enumeratedValues(nodes)?.filter((value) => satisfies(value, conjunction, this)) ?? null;
  }

  /** Compiles schemas without combining keywords and listed values. */
  #leaf(nodes: KeywordNodes): Expression {
    const types = typesOf(nodes, this.style.openObjects);
    return choice([...types].map((type) => this.#typed(type, nodes)));
  }

  #typed(type: string, nodes: KeywordNodes): Expression {
    switch (type) {
      case 'null':
        return text('null');
      case 'boolean':
        return choice([text('true'), text('false')]);
      case 'string':
        return stringExpression(nodes, this);
      case 'array':
        return arrayExpression(nodes, this);
      case 'object':
        return objectExpression(nodes, this);
      default: {
        const assertions = numberAssertions(nodes, type === 'integer');
        const { minimum, maximum, multiples, nonMultiples } = assertions;
        const isFree = !minimum && !maximum && multiples.length + nonMultiples.length === 0;
        return isFree && type === 'number' ? this.json.number : numberExpression(assertions, this.budget);
      }
    }
  }
}

import type { WorkBudget } from '../automaton/work-budget.ts';
import { jsonSchemaExpression } from '../json-schema/json-schema.ts';
import { wholeMatchExpression } from '../regex/regex-automaton.ts';
import type { RegexNode } from '../regex/regex-parser.ts';
import {
  choice,
  type Expression,
  type GrammarBuilder,
  repeat,
  rule,
  sequence,
  text,
} from '../rules/expression.ts';
import { GrammarError, syntaxError } from '../rules/grammar-error.ts';
import { isTerminal, type LarkDefinition, type LarkGrammar, type LarkNode } from './lark-grammar.ts';
import { parseLark } from './lark-parser.ts';
import { type LazyRivals, lazyRivals, type Occurrence } from './lazy-rivals.ts';
import { IN_TEXT, Terminals } from './terminals.ts';

export interface LarkContext {
  readonly builder: GrammarBuilder;
  readonly budget: WorkBudget;
  /** Returns the grammar referenced as `@name`, or null if there is none. */
  grammarNamed(name: string): Expression | null;
}

/**
 * Compiles a Lark grammar with the start rule `start`. Matches like Lark's Earley parser with the lexer
 * `dynamic_complete`: a terminal may match wherever the rules allow it and need not be the longest match.
 * Only lazy rules exclude terminals that would go on where they match. Ignored terminals may surround every
 * terminal.
 */
export function larkExpression(source: string, context: LarkContext, nesting = 0): Expression {
  if (nesting > MAX_NESTING)
    throw new GrammarError(`Grammars are nested more than ${MAX_NESTING} levels deep`);
  return new LarkCompiler(source, context, nesting).compile();
}

const MAX_NESTING = 20;
/** Work of one rule. */
const RULE_COST = 500;

class LarkCompiler {
  readonly #source: string;
  readonly #grammar: LarkGrammar;
  readonly #context: LarkContext;
  readonly #nesting: number;
  readonly #terminals: Terminals;
  readonly #rivals: LazyRivals;
  /** By name. */
  readonly #rules = new Map<string, Expression>();
  readonly #queue: { definition: LarkDefinition; index: number }[] = [];
  readonly #ignored: Expression | null;

  constructor(source: string, context: LarkContext, nesting: number) {
    this.#source = source;
    this.#grammar = parseLark(source);
    for (const name of this.#grammar.ignoredAttributes) context.builder.ignoredKeywords.add(name);
    this.#context = context;
    this.#nesting = nesting;
    this.#terminals = new Terminals(source, this.#grammar.definitions, context.budget);
    this.#rivals = lazyRivals(this.#grammar, this.#terminals, context.budget);
    this.#ignored = this.#ignoredText();
  }

  compile(): Expression {
    if (!this.#grammar.definitions.has('start'))
      throw new GrammarError('The grammar has no rule named "start"');
    const start = this.#reference({ kind: 'name', name: 'start', offset: 0 });
    for (let next = this.#queue.pop(); next !== undefined; next = this.#queue.pop()) {
      this.#context.builder.define(next.index, this.#expression(next.definition.body));
    }
    return this.#ignored === null ? start : sequence(this.#ignored, start);
  }

  /** All ignored text as one rule. Separate loops per terminal would be ambiguous. */
  #ignoredText(): Expression | null {
    const { ignored, ignoresOnce } = this.#grammar;
    if (ignored.length === 0) return null;
    const parts = ignored.map((node) => this.#regexExpression(this.#terminals.of(node)));
    return this.#context.builder.add(repeat(choice(parts), 0, ignoresOnce ? 1 : Number.POSITIVE_INFINITY));
  }

  #reference(node: LarkNode & { readonly kind: 'name' }): Expression {
    const definition = this.#grammar.definitions.get(node.name);
    if (!definition) throw this.#undefined(node.name, node.offset);
    const isLexeme = isTerminal(node.name) || definition.lazy !== null;
    // A terminal that a lazy rule cuts short is another one than elsewhere.
    if (isLexeme && isTerminal(node.name) && this.#rivals.has(node)) return this.#terminal(node);
    const cached = this.#rules.get(node.name);
    if (cached) return cached;
    this.#context.budget.spend(RULE_COST);
    const index = this.#context.builder.declare();
    this.#rules.set(node.name, rule(index));
    if (definition.lazy !== null) this.#context.builder.define(index, this.#lazyRule(definition));
    else if (isLexeme) this.#context.builder.define(index, this.#terminal(node));
    else this.#queue.push({ definition, index });
    return rule(index);
  }

  /** Ignored text may follow every terminal in a rule, but nothing is ignored within a terminal. */
  #expression(node: LarkNode): Expression {
    this.#context.budget.spend(20);
    switch (node.kind) {
      case 'name': {
        const reference = this.#reference(node);
        const isLexeme = isTerminal(node.name) || this.#grammar.definitions.get(node.name)!.lazy !== null;
        return isLexeme ? this.#withIgnored(reference) : reference;
      }
      case 'string':
      case 'regex':
      case 'range':
      case 'substring':
        return this.#withIgnored(this.#terminal(node));
      case 'sequence':
      case 'choice':
        return { kind: node.kind, items: node.items.map((item) => this.#expression(item)) };
      case 'repeat':
        return repeat(this.#expression(node.item), node.min, node.max);
      case 'and':
      case 'not':
        throw this.#error(node.offset, '"&" and "~" are supported in terminals only');
      default:
        return this.#withIgnored(this.#embedded(node));
    }
  }

  #embedded(node: LarkNode & { readonly kind: 'token' | 'grammar' | 'lark' | 'json' }): Expression {
    const { builder, budget } = this.#context;
    switch (node.kind) {
      case 'token':
        return typeof node.token === 'string'
          ? builder.token(node.token)
          : { kind: 'tokens', ids: node.token };
      case 'lark':
        return larkExpression(node.source, this.#context, this.#nesting + 1);
      case 'json':
        return jsonSchemaExpression(node.schema, builder, budget);
      case 'grammar': {
        const grammar = this.#context.grammarNamed(node.name);
        if (!grammar) throw this.#undefined(`@${node.name}`, node.offset);
        return grammar;
      }
    }
  }

  #withIgnored(expression: Expression): Expression {
    return this.#ignored === null ? expression : sequence(expression, this.#ignored);
  }

  #terminal(node: LarkNode): Expression {
    const rivals = this.#rivals.get(node);
    if (rivals !== undefined) return this.#cut(node, rivals);
    if (node.kind === 'string' && !node.ignoreCase) return text(node.value);
    return this.#regexExpression(this.#terminals.of(node));
  }

  #lazyRule(definition: LarkDefinition): Expression {
    return this.#cut(definition, this.#rivals.get(definition) ?? []);
  }

  #cut(occurrence: Occurrence, rivals: Iterable<LarkDefinition>): Expression {
    return this.#regexExpression({ kind: 'automaton', automaton: this.#terminals.cut(occurrence, rivals) });
  }

  #regexExpression(node: RegexNode): Expression {
    return wholeMatchExpression(node, this.#context.budget, IN_TEXT);
  }

  #undefined(name: string, offset: number): GrammarError {
    return this.#error(offset, `"${name}" is used but not defined`);
  }

  #error(offset: number, message: string): GrammarError {
    return syntaxError(this.#source, offset, message);
  }
}

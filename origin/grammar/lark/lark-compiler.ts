import { codePoints } from '../automaton/code-points.ts';
import {
  chars,
  choice,
  type Expression,
  type GrammarBuilder,
  repeat,
  rule,
  sequence,
  text,
} from '../expression.ts';
import { GrammarError, syntaxError } from '../grammar-error.ts';
import { jsonSchemaExpression } from '../json-schema/json-schema.ts';
import { otherCases } from '../regex/character-sets.ts';
import { hasAnchors, wholeMatchExpression } from '../regex/regex-automaton.ts';
import { parseRegex } from '../regex/regex-parser.ts';
import type { WorkBudget } from '../work-budget.ts';
import { type LarkGrammar, type LarkNode, parseLark } from './lark-parser.ts';

export interface LarkContext {
  readonly builder: GrammarBuilder;
  readonly budget: WorkBudget;
  /** Returns the grammar referenced as `@name`, or null if there is none. */
  grammarNamed(name: string): Expression | null;
}

/**
 * Compiles a Lark grammar with the start rule `start`. Matches like Lark's Earley parser with the lexer
 * `dynamic_complete`: a terminal may match wherever the rules allow it and need not be the longest match. Ignored
 * terminals may surround every terminal.
 */
export function larkExpression(source: string, context: LarkContext): Expression {
  return new LarkCompiler(source, context).compile();
}

class LarkCompiler {
  readonly #source: string;
  readonly #grammar: LarkGrammar;
  readonly #context: LarkContext;
  readonly #rules = new Map<string, number>();
  readonly #queue: string[] = [];
  readonly #ignored: Expression | null;

  constructor(source: string, context: LarkContext) {
    this.#source = source;
    this.#grammar = parseLark(source);
    this.#context = context;
    this.#ignored = this.#ignoredText();
  }

  compile(): Expression {
    if (!this.#grammar.definitions.has('start'))
      throw new GrammarError('The grammar has no rule named "start"');
    const start = this.#reference('start', 0);
    for (let name = this.#queue.pop(); name !== undefined; name = this.#queue.pop()) {
      const expression = this.#expression(this.#grammar.definitions.get(name)!, isTerminal(name));
      this.#context.builder.define(this.#rules.get(name)!, expression);
    }
    return this.#ignored === null ? start : sequence(this.#ignored, start);
  }

  /** All ignored text as one rule. Separate loops per terminal would be ambiguous. */
  #ignoredText(): Expression | null {
    const { ignored } = this.#grammar;
    if (ignored.length === 0) return null;
    const parts = ignored.map((node) => this.#inlineTerminal(node, 0));
    return this.#context.builder.add(repeat(choice(parts), 0, Number.POSITIVE_INFINITY));
  }

  /** Copies the terminals that a terminal refers to into it. */
  #inlineTerminal(node: LarkNode, depth: number): Expression {
    this.#context.budget.spend(100);
    if (depth > 50)
      throw new GrammarError('A terminal in %ignore is nested more than 50 levels deep or refers to itself');
    switch (node.kind) {
      case 'name': {
        const inner = this.#grammar.definitions.get(node.name);
        if (!inner || !isTerminal(node.name)) throw this.#undefined(node.name, node.offset);
        return this.#inlineTerminal(inner, depth + 1);
      }
      case 'sequence':
      case 'choice':
        return { kind: node.kind, items: node.items.map((item) => this.#inlineTerminal(item, depth + 1)) };
      case 'repeat':
        return repeat(this.#inlineTerminal(node.item, depth + 1), node.min, node.max);
      default:
        return this.#expression(node, true);
    }
  }

  #reference(name: string, offset: number): Expression {
    if (!this.#grammar.definitions.has(name)) throw this.#undefined(name, offset);
    let index = this.#rules.get(name);
    if (index === undefined) {
      index = this.#context.builder.declare();
      this.#rules.set(name, index);
      this.#queue.push(name);
    }
    return rule(index);
  }

  /** Ignored text may follow every terminal in a rule, but nothing is ignored within a terminal. */
  #expression(node: LarkNode, inTerminal: boolean): Expression {
    this.#context.budget.spend(20);
    const terminal = (expression: Expression): Expression =>
      inTerminal || this.#ignored === null ? expression : sequence(expression, this.#ignored);
    switch (node.kind) {
      case 'name': {
        const reference = this.#reference(node.name, node.offset);
        if (inTerminal && !isTerminal(node.name)) {
          throw syntaxError(this.#source, node.offset, 'A terminal cannot contain rules');
        }
        return isTerminal(node.name) ? terminal(reference) : reference;
      }
      case 'string':
        return terminal(node.ignoreCase ? eitherCase(node.value) : text(node.value));
      case 'regex':
        return terminal(this.#regex(node));
      case 'range':
        return terminal(chars(codePoints([[node.from, node.to]])));
      case 'sequence':
      case 'choice':
        return { kind: node.kind, items: node.items.map((item) => this.#expression(item, inTerminal)) };
      case 'repeat':
        return repeat(this.#expression(node.item, inTerminal), node.min, node.max);
      case 'grammar': {
        const found = this.#context.grammarNamed(node.name);
        if (!found) throw this.#undefined(`@${node.name}`, node.offset);
        return terminal(found);
      }
      case 'json':
        return terminal(jsonSchemaExpression(node.schema, this.#context.builder, this.#context.budget));
    }
  }

  #regex({ source, flags, offset }: LarkNode & { readonly kind: 'regex' }): Expression {
    if (flags.includes('x')) throw syntaxError(this.#source, offset, 'The flag "x" is not supported');
    try {
      const options = { ignoreCase: flags.includes('i'), dotAll: flags.includes('s') };
      const node = parseRegex(source, this.#context.budget, options);
      // The flag has no effect without anchors.
      if (flags.includes('m') && hasAnchors(node)) throw new GrammarError('The flag "m" is not supported');
      return wholeMatchExpression(node, this.#context.budget);
    } catch (error) {
      if (!(error instanceof GrammarError)) throw error;
      throw syntaxError(this.#source, offset, `Invalid regular expression (${error.message})`);
    }
  }

  #undefined(name: string, offset: number): GrammarError {
    return syntaxError(this.#source, offset, `"${name}" is used but not defined`);
  }
}

function isTerminal(name: string): boolean {
  return /^_?[A-Z]/.test(name);
}

/** Matches the text in any letter case. */
function eitherCase(value: string): Expression {
  return sequence(
    ...Array.from(value, (char) => {
      const codePoint = char.codePointAt(0)!;
      return chars(codePoints([codePoint, ...otherCases(codePoint)].map((one) => [one, one])));
    }),
  );
}

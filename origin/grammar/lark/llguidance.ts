import type { WorkBudget } from '../automaton/work-budget.ts';
import { jsonSchemaExpression } from '../json-schema/json-schema.ts';
import { isJsonObject } from '../json-schema/keywords.ts';
import { parseJson } from '../rules/exact-json.ts';
import { type Expression, type Grammar, GrammarBuilder } from '../rules/expression.ts';
import { GrammarError } from '../rules/grammar-error.ts';
import { type LarkContext, larkExpression } from './lark-compiler.ts';

/** Compiles one Lark grammar. */
export function larkGrammar(source: string, budget: WorkBudget): Grammar {
  return llguidanceGrammar({ grammars: [{ lark_grammar: source }] }, budget);
}

/**
 * Compiles llguidance's JSON form, an object or its text: `{"grammars": [{"name"?, "lark_grammar"} |
 * {"name"?, "json_schema"}]}`. The first grammar is the start. Lark grammars refer to the others as `@name`.
 */
export function llguidanceGrammar(value: unknown, budget: WorkBudget): Grammar {
  const parts = grammarsOf(value);
  const builder = new GrammarBuilder();
  const root = builder.declare();
  const references = new Map<GrammarPart, Expression>();
  const context: LarkContext = {
    builder,
    budget,
    grammarNamed: (name) => {
      const part = parts.find((candidate) => candidate.name === name);
      return part === undefined ? null : expressionOf(part);
    },
  };
  const expressionOf = (part: GrammarPart): Expression => {
    const cached = references.get(part);
    if (cached) return cached;
    // Registers the rule before it is compiled, so that grammars may refer to each other.
    const index = builder.declare();
    const reference: Expression = { kind: 'rule', rule: index };
    references.set(part, reference);
    builder.define(
      index,
      part.lark === undefined
        ? jsonSchemaExpression(part.schema, builder, budget)
        : larkExpression(part.lark, context),
    );
    return reference;
  };
  builder.define(root, expressionOf(parts[0]!));
  return builder.build(root);
}

interface GrammarPart {
  readonly name: string | undefined;
  readonly lark: string | undefined;
  readonly schema: unknown;
}

function grammarsOf(value: unknown): GrammarPart[] {
  const parsed = typeof value === 'string' ? parseJson(value, 'The grammar') : value;
  const grammars = isJsonObject(parsed) ? parsed.grammars : undefined;
  if (!Array.isArray(grammars) || grammars.length === 0)
    throw new GrammarError('"grammars" must be a non-empty array');
  return grammars.map((grammar: unknown, index) => {
    const where = `grammars[${index}]`;
    if (!isJsonObject(grammar)) throw new GrammarError(`${where} must be an object`);
    // A null field counts as absent.
    const given = Object.fromEntries(Object.entries(grammar).filter(([, value]) => value !== null));
    const { name, lark_grammar: lark, json_schema: schema, ...others } = given;
    const unknown = Object.keys(others)[0];
    if (unknown !== undefined) throw new GrammarError(`${where}.${unknown} is not supported`);
    if (name !== undefined && typeof name !== 'string')
      throw new GrammarError(`${where}.name must be a string`);
    if (lark !== undefined && typeof lark !== 'string') {
      throw new GrammarError(`${where}.lark_grammar must be a string`);
    }
    if ((lark === undefined) === (schema === undefined)) {
      throw new GrammarError(`${where} must have either "lark_grammar" or "json_schema"`);
    }
    return { name, lark, schema };
  });
}

import { ApiError } from '../../shared/errors.ts';
import type { WireConstraint } from '../../shared/generation.ts';
import { choiceGrammar } from './choice.ts';
import type { CompiledGrammar } from './constraint.ts';
import type { Grammar } from './expression.ts';
import { parseGbnf } from './gbnf/gbnf-parser.ts';
import { GrammarError } from './grammar-error.ts';
import { jsonObjectGrammar, jsonSchemaGrammar } from './json-schema/json-schema.ts';
import { lower } from './program/lower.ts';
import type { Program } from './program/program.ts';
import { wholeMatchExpression } from './regex/regex-expression.ts';
import { parseRegex } from './regex/regex-parser.ts';
import { GrammarRuntime } from './runtime/grammar-runtime.ts';
import type { GrammarVocabulary } from './runtime/grammar-vocabulary.ts';
import { BudgetExceeded, WorkBudget } from './work-budget.ts';

/** Work one compilation may do; about a second. */
const COMPILE_BUDGET = 40_000_000;

/** Compiles a constraint in this thread. ApiError naming the fault when it cannot be done. */
export function compileConstraint(wire: WireConstraint, vocabulary: GrammarVocabulary): CompiledGrammar {
  return new GrammarRuntime(compileProgram(wire), vocabulary);
}

/** Compiles a constraint to tables that know no vocabulary and may cross threads. */
export function compileProgram(wire: WireConstraint): Program {
  const budget = new WorkBudget('The grammar', COMPILE_BUDGET);
  try {
    return lower(read(wire, budget), budget);
  } catch (error) {
    throw toApiError(error, wire);
  }
}

function read(wire: WireConstraint, budget: WorkBudget): Grammar {
  switch (wire.type) {
    case 'gbnf':
      return parseGbnf(wire.value);
    case 'regex':
      return { rules: [wholeMatchExpression(parseRegex(wire.value, budget), budget)], root: 0 };
    case 'choice':
      return choiceGrammar(wire.value);
    case 'json_schema':
      return jsonSchemaGrammar(wire.value, budget);
    case 'json_object':
      return jsonObjectGrammar(budget);
    case 'lark':
      throw new GrammarError(`${wire.type} is not supported`);
  }
}

function toApiError(error: unknown, wire: WireConstraint): unknown {
  const param = PARAM[wire.type];
  const code = wire.type === 'json_schema' ? 'invalid_json_schema' : 'invalid_grammar';
  if (error instanceof GrammarError) return new ApiError(code, error.message, { param });
  if (error instanceof BudgetExceeded)
    return new ApiError(code, `${error.message}; please simplify it.`, { param });
  return error;
}

/** The field callers usually send each kind in. */
const PARAM: Readonly<Record<WireConstraint['type'], string>> = {
  gbnf: 'grammar',
  regex: 'grammar',
  lark: 'grammar',
  json_schema: 'json_schema',
  json_object: 'response_format',
  choice: 'guided_choice',
};

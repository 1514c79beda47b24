import { ApiError } from '../../shared/errors.ts';
import type { WireConstraint } from '../../shared/generation.ts';
import { choice, type Grammar, text } from './expression.ts';
import { parseGbnf } from './gbnf/gbnf-parser.ts';
import { GrammarError } from './grammar-error.ts';
import { jsonObjectGrammar, jsonSchemaGrammar } from './json-schema/json-schema.ts';
import { larkGrammar, llguidanceGrammar } from './lark/llguidance.ts';
import { lowerGrammar } from './program/lower.ts';
import type { Program } from './program/program.ts';
import { wholeMatchExpression } from './regex/regex-automaton.ts';
import { parseRegex } from './regex/regex-parser.ts';
import { BudgetExceeded, WorkBudget } from './work-budget.ts';

/** Work one compilation may do; about a second. */
const COMPILE_BUDGET = 40_000_000;
/** Characters of a grammar, or of a schema as JSON. */
const MAX_SOURCE = 1_000_000;

/**
 * Compiles a constraint to tables that know no vocabulary and may cross processes.
 * @param isExpired asked now and then; the compilation is given up when it says so
 */
export function compileProgram(wire: WireConstraint, isExpired?: () => boolean): Program {
  const budget = new WorkBudget('The grammar', COMPILE_BUDGET, isExpired);
  try {
    if (sourceLength(wire) > MAX_SOURCE) throw new GrammarError(`More than ${MAX_SOURCE} characters`);
    return lowerGrammar(read(wire, budget), budget);
  } catch (error) {
    throw toApiError(error, wire);
  }
}

function sourceLength(wire: WireConstraint): number {
  if (wire.type === 'json_object') return 0;
  return typeof wire.value === 'string' ? wire.value.length : JSON.stringify(wire.value).length;
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
      // No Lark grammar begins with a brace: this is llguidance's JSON form.
      return /^\s*\{/.test(wire.value)
        ? llguidanceGrammar(wire.value, budget)
        : larkGrammar(wire.value, budget);
  }
}

function toApiError(error: unknown, wire: WireConstraint): ApiError {
  const param = PARAM[wire.type];
  const code = wire.type === 'json_schema' ? 'invalid_json_schema' : 'invalid_grammar';
  if (error instanceof GrammarError) return new ApiError(code, error.message, { param });
  const isTooMuch = error instanceof BudgetExceeded || error instanceof RangeError;
  if (!isTooMuch) throw error;
  // A RangeError is an overflowing stack or an array beyond its limits: the grammar is too deep or too large.
  return new ApiError(code, 'The grammar is too large or too complex to compile; please simplify it.', {
    param,
  });
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

/** Exactly one of the given texts. */
export function choiceGrammar(texts: readonly string[]): Grammar {
  texts.forEach((value, index) => {
    if (!value.isWellFormed()) throw new GrammarError(`Choice ${index} contains a lone surrogate`);
  });
  return { rules: [choice(texts.map(text))], root: 0 };
}

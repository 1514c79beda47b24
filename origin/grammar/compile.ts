import { ApiError } from '@continuo/shared/errors.ts';
import type { WireConstraint } from '@continuo/shared/generation.ts';
import { BudgetExceeded, WorkBudget } from './automaton/work-budget.ts';
import { parseGbnf } from './gbnf/gbnf-parser.ts';
import { jsonSchemaGrammar } from './json-schema/json-schema.ts';
import { larkGrammar, llguidanceGrammar } from './lark/llguidance.ts';
import { lowerGrammar, lowerPatterns } from './program/lower.ts';
import type { Program } from './program/program.ts';
import { needsAutomaton, wholeMatchExpression } from './regex/regex-automaton.ts';
import { parseRegex } from './regex/regex-parser.ts';
import { choice, type Grammar, text } from './rules/expression.ts';
import { GrammarError } from './rules/grammar-error.ts';

/** Work units that one compilation may spend: 1 to 4 s of CPU time. */
const COMPILE_BUDGET = 40_000_000;
/** Maximum characters of a grammar, or of a schema as JSON text. */
const MAX_SOURCE = 1_000_000;

/** Regular expressions to search for. */
export interface PatternList {
  readonly type: 'patterns';
  /** The request field, for errors. */
  readonly field: string;
  /** By index in the field; null = an entry that is not a pattern. */
  readonly value: readonly (string | null)[];
}

/**
 * Compiles a constraint or a list of patterns to a program, which does not depend on the vocabulary.
 * @throws ApiError naming the error and the request field
 */
export function compileProgram(wire: WireConstraint | PatternList): Program {
  const budget = new WorkBudget(COMPILE_BUDGET);
  if (wire.type === 'patterns') return compilePatterns(wire, budget);
  try {
    const length = sourceLength(wire);
    if (length > MAX_SOURCE) {
      throw new GrammarError(`The constraint has ${length} characters; at most ${MAX_SOURCE} are allowed`);
    }
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
      return jsonSchemaGrammar(wire.value, budget, wire);
    case 'json_object':
      return jsonSchemaGrammar({ type: 'object' }, budget);
    case 'lark':
      // A Lark grammar never begins with a brace, so this is llguidance's JSON form.
      return /^\s*\{/.test(wire.value)
        ? llguidanceGrammar(wire.value, budget)
        : larkGrammar(wire.value, budget);
  }
}

/** @throws ApiError naming the pattern */
function compilePatterns({ field, value }: PatternList, budget: WorkBudget): Program {
  const indices = value.flatMap((source, index) => (source === null ? [] : [index]));
  let current = 0;
  const fail = (place: number, reason: string): never => {
    const param = `${field}[${indices[place]}]`;
    throw new ApiError('invalid_value', `Invalid '${param}': ${reason}.`, { param });
  };
  try {
    const expressions = indices.map((index, place) => {
      current = place;
      const node = parseRegex(value[index]!, budget);
      if (needsAutomaton(node))
        fail(place, 'Anchors, look-around and word boundaries are not supported here');
      return wholeMatchExpression(node, budget);
    });
    return lowerPatterns(expressions, budget, fail);
  } catch (error) {
    if (error instanceof GrammarError) return fail(current, error.message);
    const isTooMuch = error instanceof BudgetExceeded || error instanceof RangeError;
    if (!isTooMuch) throw error;
    return fail(current, 'It is too large or too complex to compile. Simplify it');
  }
}

function toApiError(error: unknown, wire: WireConstraint): ApiError {
  const param = PARAM[wire.type];
  const code = wire.type === 'json_schema' ? 'invalid_json_schema' : 'invalid_grammar';
  if (error instanceof GrammarError) return new ApiError(code, error.message, { param });
  const isTooMuch = error instanceof BudgetExceeded || error instanceof RangeError;
  if (!isTooMuch) throw error;
  // A RangeError is a stack overflow or an array that exceeds its limits.
  return new ApiError(code, 'The grammar is too large or too complex to compile. Simplify it.', {
    param,
  });
}

/** The request field that usually carries each type. */
const PARAM: Readonly<Record<WireConstraint['type'], string>> = {
  gbnf: 'grammar',
  regex: 'grammar',
  lark: 'grammar',
  json_schema: 'json_schema',
  json_object: 'response_format',
  choice: 'guided_choice',
};

/** A grammar that matches exactly one of the texts. */
function choiceGrammar(texts: readonly string[]): Grammar {
  texts.forEach((value, index) => {
    if (!value.isWellFormed())
      throw new GrammarError(`Choice ${index} contains a lone surrogate, which UTF-8 cannot encode`);
  });
  return { rules: [choice(texts.map(text))], root: 0 };
}

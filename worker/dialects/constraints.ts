import type { CompletionRequest } from '@continuo/shared/completion.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { parseWithDigits } from '@continuo/shared/exact-numbers.ts';
import type { WireConstraint } from '@continuo/shared/generation.ts';
import { kindOf, MAX_SCHEMA_DEPTH } from '@continuo/shared/json-fields.ts';
import { isJsonObject } from '@continuo/shared/json-object.ts';
import type { ObjectDefaults } from '@continuo/shared/tenant.ts';
import type { Dialect } from './dialect.ts';
import { missingParameter, unsupportedParameter } from './request-errors.ts';
import { strictViolation } from './strict-schema.ts';

/** A constraint and its field, for error messages. */
export interface NamedConstraint {
  readonly field: string;
  readonly constraint: WireConstraint;
}

function nestsTooDeep(value: unknown, limit = MAX_SCHEMA_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return limit === 0 || Object.values(value).some((child) => nestsTooDeep(child, limit - 1));
}

/** JSON.parse reads 1e999 as Infinity, which would be serialized as null. */
function containsInfinity(value: unknown): boolean {
  if (typeof value === 'number') return !Number.isFinite(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(containsInfinity);
}

const invalidSchema = (field: string, why: string): ApiError =>
  new ApiError('invalid_json_schema', `Invalid '${field}': ${why}`, { param: field });

/** Reads a JSON Schema that is an object or JSON text. */
function schemaConstraint(field: string, value: unknown): NamedConstraint {
  let schema = value;
  if (typeof value === 'string') {
    try {
      schema = parseWithDigits(value);
    } catch {
      throw invalidSchema(field, 'the string is not valid JSON.');
    }
  }
  if (typeof schema !== 'boolean' && !isJsonObject(schema))
    throw invalidSchema(field, 'a JSON Schema must be an object or a boolean.');
  if (nestsTooDeep(schema))
    throw invalidSchema(field, `the schema nests deeper than ${MAX_SCHEMA_DEPTH} levels.`);
  if (containsInfinity(schema)) throw invalidSchema(field, 'the schema contains a number that is too large.');
  return { field, constraint: { type: 'json_schema', value: schema } };
}

const text = (field: string, type: 'gbnf' | 'regex' | 'lark', value: string): NamedConstraint => ({
  field,
  constraint: { type, value },
});

type Grammar = NonNullable<CompletionRequest['grammar']>;

function fromGrammar(grammar: Grammar): NamedConstraint {
  if (typeof grammar === 'string') return text('grammar', 'gbnf', grammar);
  const field = 'grammar.value';
  if (!present(grammar.value)) throw missingParameter(field);
  if (grammar.type === 'json_schema') return schemaConstraint(field, grammar.value);
  if (grammar.type === 'llguidance' && typeof grammar.value !== 'string')
    return fromLlguidance(grammar.value);
  if (typeof grammar.value !== 'string') {
    const message = `Invalid type for '${field}': expected a string, but got ${kindOf(grammar.value)} instead.`;
    throw new ApiError('invalid_type', message, { param: field });
  }
  if (grammar.value === '') {
    const message = `Invalid '${field}': empty string. Expected a string with minimum length 1.`;
    throw new ApiError('empty_string', message, { param: field });
  }
  return text(field, grammar.type === 'llguidance' ? 'lark' : grammar.type, grammar.value);
}

/** Reads llguidance's JSON form: a list of grammars. Supports one grammar, as Lark or JSON Schema. */
function fromLlguidance(value: unknown): NamedConstraint {
  const grammars: unknown = (value as { grammars?: unknown }).grammars;
  const first: unknown = Array.isArray(grammars) && grammars.length === 1 ? grammars[0] : null;
  const { lark_grammar: lark, json_schema: schema } = (first ?? {}) as Record<string, unknown>;
  const field = 'grammar.value.grammars[0]';
  if (typeof lark === 'string' && lark !== '' && !present(schema))
    return text(`${field}.lark_grammar`, 'lark', lark);
  if (present(schema) && !present(lark)) return schemaConstraint(`${field}.json_schema`, schema);
  const message =
    "Invalid 'grammar.value': expected Lark text, or an object whose 'grammars' contains one entry with 'lark_grammar' or 'json_schema'.";
  throw new ApiError('invalid_grammar', message, { param: 'grammar.value' });
}

type ResponseFormat = NonNullable<CompletionRequest['response_format']>;

function fromResponseFormat(format: ResponseFormat, { strictSchemas }: Dialect): NamedConstraint | null {
  const need = <T>(value: T, field: string): NonNullable<T> => {
    if (present(value)) return value;
    throw missingParameter(field);
  };
  switch (format.type) {
    case 'text':
      return null;
    case 'grammar':
      return text('response_format.grammar', 'gbnf', need(format.grammar, 'response_format.grammar'));
    case 'json_object':
      return stated(format.schema)
        ? schemaConstraint('response_format.schema', format.schema)
        : { field: 'response_format', constraint: { type: 'json_object' } };
    case 'json_schema': {
      const field = 'response_format.json_schema.schema';
      const read = schemaConstraint(field, need(format.json_schema?.schema ?? format.schema, field));
      const { constraint } = read;
      if (!strictSchemas || !format.json_schema?.strict || constraint.type !== 'json_schema') return read;
      const violation = strictViolation(constraint.value);
      if (violation !== null) throw invalidSchema(field, `with 'strict', ${violation}.`);
      return read;
    }
  }
}

type StructuredOutputs = NonNullable<CompletionRequest['structured_outputs']>;

function fromStructuredOutputs(outputs: StructuredOutputs): (NamedConstraint | null)[] {
  const { json, regex, choice, grammar, json_object: jsonObject } = outputs;
  const constraints: (NamedConstraint | null)[] = [
    stated(json) ? schemaConstraint('structured_outputs.json', json) : null,
    stated(regex) ? text('structured_outputs.regex', 'regex', regex) : null,
    present(choice)
      ? { field: 'structured_outputs.choice', constraint: { type: 'choice', value: choice } }
      : null,
    stated(grammar) ? text('structured_outputs.grammar', 'gbnf', grammar) : null,
    jsonObject ? { field: 'structured_outputs.json_object', constraint: { type: 'json_object' } } : null,
  ];
  // An empty object asks for nothing. A kind of constraint that is unknown must not be dropped.
  const asksNothing = Object.values(outputs).every((value) => !stated(value) || value === false);
  if (asksNothing || constraints.some((constraint) => constraint !== null)) return constraints;
  const message =
    "Invalid 'structured_outputs': expected one of 'json', 'regex', 'choice', 'grammar', 'json_object'.";
  throw new ApiError('invalid_value', message, { param: 'structured_outputs' });
}

/**
 * A completion cannot contain tool calls. The only supported use is a strict function that `tool_choice`
 * forces: the text is then its arguments. Without tools, a `tool_choice` that forces none has no effect, nor
 * have tools with `none`.
 * @throws ApiError 400 for every other use
 */
function fromTools(request: CompletionRequest): NamedConstraint | null {
  const tools = request.tools ?? [];
  const choice = request.tool_choice ?? 'auto';
  if (tools.length === 0) {
    if (typeof choice === 'string' && choice !== 'required') return null;
    const message = "Missing required parameter: 'tools', which 'tool_choice' refers to.";
    throw new ApiError('missing_required_parameter', message, { param: 'tools' });
  }
  if (choice === 'none') return null;
  const name = typeof choice === 'object' ? choice.function.name : null;
  const index = tools.findIndex((tool) => tool.function.name === name);
  if (name !== null && index === -1) {
    const message = `Invalid 'tool_choice': there is no function '${name.slice(0, 64)}' in 'tools'.`;
    throw new ApiError('invalid_value', message, { param: 'tool_choice' });
  }
  const forced = tools[index]?.function;
  if (forced?.strict)
    return schemaConstraint(`tools[${index}].function.parameters`, forced.parameters ?? { type: 'object' });
  const only = "only with a strict function that 'tool_choice' forces, and the text is then its arguments";
  throw unsupportedParameter('tools', `is supported ${only}`);
}

/** Clients that send all of a server's fields send an empty text for no constraint. */
const stated = <T>(value: T): value is NonNullable<T> => present(value) && value !== '';

const present = <T>(value: T): value is NonNullable<T> => value !== undefined && value !== null;

/**
 * Returns the constraint of a request; null if there is none. It may have several names with equal values.
 * @throws ApiError 400 if there are two constraints, or an invalid one
 */
export function constraintOf(
  request: CompletionRequest,
  dialect: Dialect,
  defaults: Partial<ObjectDefaults>,
): NamedConstraint | null {
  const { grammar, json_schema, guided_json, guided_regex, guided_choice, guided_grammar, regex, ebnf } =
    request;
  const constraints = [
    stated(grammar) ? fromGrammar(grammar) : null,
    stated(json_schema) ? schemaConstraint('json_schema', json_schema) : null,
    present(request.response_format) ? fromResponseFormat(request.response_format, dialect) : null,
    stated(guided_json) ? schemaConstraint('guided_json', guided_json) : null,
    stated(guided_regex) ? text('guided_regex', 'regex', guided_regex) : null,
    present(guided_choice)
      ? ({ field: 'guided_choice', constraint: { type: 'choice', value: guided_choice } } as const)
      : null,
    stated(guided_grammar) ? text('guided_grammar', 'gbnf', guided_grammar) : null,
    ...(present(request.structured_outputs) ? fromStructuredOutputs(request.structured_outputs) : []),
    stated(regex) ? text('regex', 'regex', regex) : null,
    stated(ebnf) ? text('ebnf', 'gbnf', ebnf) : null,
    fromTools(request),
  ].filter((constraint) => constraint !== null);
  const [first, ...others] = constraints;
  if (first === undefined) return null;
  const second = others.find(
    ({ constraint }) => JSON.stringify(constraint) !== JSON.stringify(first.constraint),
  );
  if (second) {
    const message = `Conflicting parameters: '${first.field}' and '${second.field}' both constrain the text. Send one of them.`;
    throw new ApiError('conflicting_parameters', message, { param: first.field });
  }
  return { ...first, constraint: styled(first.constraint, request, defaults) };
}

/** Adds how the objects of a JSON Schema are generated. */
function styled(
  constraint: WireConstraint,
  request: CompletionRequest,
  defaults: Partial<ObjectDefaults>,
): WireConstraint {
  if (constraint.type !== 'json_schema') return constraint;
  return {
    ...constraint,
    ...((request.open_objects ?? defaults.openObjects) ? { openObjects: true } : {}),
    ...((request.any_key_order ?? defaults.anyKeyOrder) ? { anyKeyOrder: true } : {}),
  };
}

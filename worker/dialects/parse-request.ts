import { ApiError, type ErrorCode, isErrorCode } from '@continuo/shared/errors.ts';
import { firstOf, kindOf } from '@continuo/shared/json-fields.ts';
import * as z from 'zod';
import { missingParameter } from './request-errors.ts';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

interface ErrorText {
  readonly code: ErrorCode;
  readonly message: string;
}

/** `['stop', 2]` → `stop[2]`, `['stream_options', 'include_usage']` → `stream_options.include_usage`. */
function paramOf(path: Path): string {
  return path.reduce<string>(
    (name, part) =>
      typeof part === 'number' ? `${name}[${part}]` : name === '' ? String(part) : `${name}.${String(part)}`,
    '',
  );
}

const MAX_SHOWN = 40;

/** Describes a value for an error message: its type, and the value itself if it is short. */
export function describeValue(value: unknown): string {
  const kind = kindOf(value);
  if (typeof value === 'object') return kind;
  if (typeof value !== 'string') return `${kind} (${String(value)})`;
  const text = value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value;
  return `${kind} (${JSON.stringify(text)})`;
}

const NOUNS: Readonly<Record<string, string>> = {
  int: 'an integer',
  bigint: 'an integer',
  number: 'a number',
  string: 'a string',
  boolean: 'a boolean',
  array: 'an array',
  tuple: 'an array',
  object: 'an object',
  record: 'an object',
};

/** The message of a number check is its tag; see shared/json-fields.ts. */
const noun = (issue: z.core.$ZodIssueInvalidType): string =>
  issue.message === 'integer' ? 'an integer' : (NOUNS[issue.expected] ?? issue.expected);

function wrongType(name: string, expected: string, input: unknown): ErrorText {
  if (input === undefined) return missingParameter(name);
  // JSON has no infinity, but JSON.parse reads 1e999 as one.
  const infinite = input === Infinity || input === -Infinity;
  const got = infinite ? 'a number that is too large to represent' : describeValue(input);
  return {
    code: 'invalid_type',
    message: `Invalid type for '${name}': expected ${expected}, but got ${got} instead.`,
  };
}

/** Shortens a number of many digits. */
const shownNumber = (input: unknown): string => {
  const text = String(input);
  return text.length > MAX_SHOWN ? String(Number(text)) : text;
};

const lengthOf = (input: unknown): number =>
  typeof input === 'string' || Array.isArray(input) ? [...input].length : 0;

function tooBig(name: string, issue: z.core.$ZodIssueTooBig): ErrorText {
  const { input, maximum } = issue;
  if (issue.origin === 'string' || issue.origin === 'array') {
    const [type, expected] =
      issue.origin === 'string' ? (['string', 'a string'] as const) : (['array', 'an array'] as const);
    const message = `Invalid '${name}': ${type} too long. Expected ${expected} with maximum length ${maximum}, but got ${expected} with length ${lengthOf(input)} instead.`;
    return { code: `${type}_above_max_length`, message };
  }
  const kind = issue.origin === 'int' || issue.message === 'integer' ? 'integer' : 'decimal';
  const message = `Invalid '${name}': ${kind} above maximum value. Expected a value ${issue.inclusive === false ? '<' : '<='} ${maximum}, but got ${shownNumber(input)} instead.`;
  return { code: `${kind}_above_max_value`, message };
}

function tooSmall(name: string, issue: z.core.$ZodIssueTooSmall): ErrorText {
  const { input, minimum } = issue;
  if (issue.origin === 'string') {
    const message = `Invalid '${name}': empty string. Expected a string with minimum length ${minimum}.`;
    return { code: 'empty_string', message };
  }
  if (issue.origin === 'array') {
    const length = lengthOf(input);
    const message = `Invalid '${name}': array too short. Expected an array with minimum length ${minimum}, but got an array with length ${length} instead.`;
    return { code: length === 0 ? 'empty_array' : 'array_below_min_length', message };
  }
  const kind = issue.origin === 'int' || issue.message === 'integer' ? 'integer' : 'decimal';
  const message = `Invalid '${name}': ${kind} below minimum value. Expected a value ${issue.inclusive === false ? '>' : '>='} ${minimum}, but got ${shownNumber(input)} instead.`;
  return { code: `${kind}_below_min_value`, message };
}

const quoted = (value: unknown): string => (typeof value === 'string' ? `'${value}'` : String(value));

function wrongValue(name: string, values: readonly unknown[], input: unknown): ErrorText {
  if (input === undefined) return wrongType(name, '', input);
  const allowed = values.map(quoted).join(', ');
  // If all allowed values have the same type, a value of another type is a type error.
  if (values.every((value) => typeof value === typeof values[0]) && typeof input !== typeof values[0]) {
    return wrongType(name, `one of ${allowed}`, input);
  }
  return {
    code: 'invalid_value',
    message: `Invalid '${name}': got ${describeValue(input)}. Supported values are: ${allowed}.`,
  };
}

/** The message of a format, and of a check without a code, says what is expected. */
const wrongForm = (name: string, { message, input }: Issue): ErrorText => ({
  code: 'invalid_value',
  message: `Invalid '${name}': ${message}, but got ${describeValue(input)} instead.`,
});

/** Returns whether a branch of a union failed because the value has another type. */
function mismatch(branch: readonly Issue[]): boolean {
  const first = branch[0];
  if (first === undefined || first.path.length > 0) return false;
  if (first.code === 'invalid_type') return first.expected !== 'int' || typeof first.input !== 'number';
  if (first.code !== 'invalid_value') return false;
  // If only `true` is allowed, `false` counts as another type.
  return first.values.length === 1 || first.values.every((value) => typeof value !== typeof first.input);
}

function expectations(branch: readonly Issue[]): string[] {
  const first = branch[0];
  if (first?.code === 'invalid_type') return [noun(first)];
  if (first?.code === 'invalid_value') return first.values.map(quoted);
  return [];
}

/** Parses a request's body or query. @throws ApiError 400 for the first invalid value */
export function parseRequest<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value, { reportInput: true });
  if (parsed.success) return parsed.data;
  throw toRequestError(firstOf(parsed.error.issues)!);
}

/** Returns the object that a field's schema describes, alone or among others; null if none. */
function objectIn(schema: unknown): z.ZodObject | null {
  if (schema instanceof z.ZodObject) return schema;
  if (schema instanceof z.ZodUnion)
    return schema.options.map(objectIn).find((option) => option !== null) ?? null;
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return objectIn(schema.unwrap());
  return schema instanceof z.ZodPipe ? objectIn(schema.in) : null;
}

/**
 * Returns the names of a body's fields that a schema does not have, also within objects:
 * `stream_options.usage`. `null` means absent.
 */
export function unknownFields(body: object, { shape, def }: z.ZodObject, prefix = ''): string[] {
  return Object.entries(body).flatMap(([name, value]) => {
    if (value === null) return [];
    if (!Object.hasOwn(shape, name)) return def.catchall === undefined ? [`${prefix}${name}`] : [];
    const inner = kindOf(value) === 'an object' ? objectIn(shape[name]) : null;
    return inner === null ? [] : unknownFields(value as object, inner, `${prefix}${name}.`);
  });
}

/** Sets of fields that a parser keeps a schema for. */
const MAX_SCHEMAS = 256;

/**
 * Returns `parseRequest` for an object with many optional fields, most of them absent. It checks the required
 * fields and those that a body has: zod takes 1 µs for each absent one.
 */
export function sparseParser<S extends z.ZodObject>(
  schema: S,
): (body: Readonly<Record<string, unknown>>) => z.output<S> {
  const fields = Object.entries<z.ZodType>(schema.shape);
  const fieldNames = new Set(fields.map(([name]) => name));
  const required = fields.filter(([, field]) => !field.safeParse(undefined).success).map(([name]) => name);
  const schemas = new Map<string, z.ZodType<z.output<S>>>();
  return (body) => {
    const given = Object.keys(body).filter((name) => fieldNames.has(name));
    const names = given.join();
    let narrow = schemas.get(names);
    if (narrow === undefined) {
      const checked = [...required, ...given];
      narrow = z.object(Object.fromEntries(fields.filter(([name]) => checked.includes(name)))) as never;
      if (schemas.size >= MAX_SCHEMAS) schemas.clear();
      schemas.set(names, narrow);
    }
    return parseRequest(narrow, body);
  };
}

/** Converts the first zod issue to an error for the caller. `path` is the schema's path in the body. */
function toRequestError(issue: Issue, path: Path = []): ApiError {
  const whole = [...path, ...issue.path];
  const name = paramOf(whole);
  if (issue.code === 'invalid_union') {
    const branch = firstOf(issue.errors.find((errors) => !mismatch(errors)) ?? []);
    if (branch) return toRequestError(branch, whole);
    const text = wrongType(name, [...new Set(issue.errors.flatMap(expectations))].join(' or '), issue.input);
    return new ApiError(text.code, text.message, { param: name });
  }
  if (issue.code === 'unrecognized_keys') {
    const param = paramOf([...whole, issue.keys[0]!]);
    return new ApiError('unsupported_parameter', `Unsupported parameter: '${param}'.`, { param });
  }
  const { code, message } = describeIssue(issue, name);
  return new ApiError(code, message, { param: name });
}

type SingleIssue = Exclude<Issue, z.core.$ZodIssueInvalidUnion | z.core.$ZodIssueUnrecognizedKeys>;

function describeIssue(issue: SingleIssue, name: string): ErrorText {
  switch (issue.code) {
    case 'invalid_type':
      return wrongType(name, noun(issue), issue.input);
    case 'too_big':
      return tooBig(name, issue);
    case 'too_small':
      return tooSmall(name, issue);
    case 'invalid_value':
      return wrongValue(name, issue.values, issue.input);
    case 'custom': {
      const code: unknown = issue.params?.code;
      if (typeof code === 'string' && isErrorCode(code)) return { code, message: issue.message };
      if (issue.message === 'integer') return wrongType(name, 'an integer', issue.input);
      return wrongForm(name, issue);
    }
    case 'invalid_format':
      return wrongForm(name, issue);
    case 'invalid_key':
      return describeIssue(firstOf(issue.issues) as SingleIssue, name);
    default:
      return { code: 'invalid_value', message: `Invalid '${name}': ${issue.message}.` };
  }
}

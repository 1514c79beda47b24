import { isRawNumber } from '@continuo/shared/exact-numbers.ts';
import leven from 'leven';
import { compareNumbers, isIntegral, isJsonNumber, type JsonNumber } from '../rules/decimal.ts';
import { schemaError } from '../rules/grammar-error.ts';
import { ANNOTATION_FORMATS, CONTENT_ENCODINGS, FORMATS, PLAIN_ENCODINGS } from './formats.ts';

/** A JSON object whose keywords are not checked yet. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value);
}

/** Keywords that do not restrict which values are valid. */
const ANNOTATIONS = new Set([
  'title',
  'description',
  'default',
  'examples',
  'example',
  '$schema',
  '$id',
  'id',
  '$comment',
  'deprecated',
  'readOnly',
  'writeOnly',
  '$defs',
  'definitions',
  '$anchor',
  '$dynamicAnchor',
  '$vocabulary',
  // OpenAPI names the branch of a `oneOf` by a tag. `conjunction.ts` makes the tag required.
  'discriminator',
]);

/** Whether a keyword says nothing about which values are valid. */
export const isAnnotation = (keyword: string): boolean =>
  ANNOTATIONS.has(keyword) || keyword.startsWith('x-');

/** Returns an error message, or null if the value is valid. `Value` is the type of valid values. */
interface Check<Value> {
  (value: unknown): string | null;
  readonly valid?: Value;
}

/** A short form of a value for error messages. */
export function excerpt(value: unknown): string {
  const text = String(JSON.stringify(value));
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

const requires =
  <Value>(message: string, isValid: (value: unknown) => boolean): Check<Value> =>
  (value) =>
    isValid(value) ? null : `${message}, received ${excerpt(value)}`;
const isArray = (value: unknown): value is unknown[] => Array.isArray(value);
const isText = (value: unknown): boolean => typeof value === 'string';
const isSchema = (value: unknown): boolean => typeof value === 'boolean' || isJsonObject(value);

const SCHEMA = requires<unknown>('must be a schema', isSchema);
const SCHEMAS = requires<readonly unknown[]>(
  'must be a non-empty array of schemas',
  (v) => isArray(v) && v.length > 0,
);
const SCHEMA_MAP = requires<JsonObject>('must be an object', isJsonObject);
const COUNT = requires<number>(
  'must be a non-negative integer',
  (v) => isJsonNumber(v) && isIntegral(v) && compareNumbers(v, 0) >= 0,
);
const isFiniteNumber = (v: unknown): v is JsonNumber => isRawNumber(v) || Number.isFinite(v);
const NUMBER = requires<JsonNumber>('must be a finite number', isFiniteNumber);
const TEXT = requires<string>('must be a string', isText);
const TEXTS = requires<readonly string[]>(
  'must be an array of strings',
  (v) => isArray(v) && v.every(isText),
);

export const TYPES = ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object'] as const;
export type TypeName = (typeof TYPES)[number];
const isType = (value: unknown): boolean => TYPES.some((type) => type === value);

const VALUE: Check<unknown> = () => null;
const VALUES = requires<readonly unknown[]>('must be an array of values', isArray);

/** Enforced keywords that apply to all types. Subschemas are checked when they are visited. */
const GENERAL_KEYWORDS = {
  $ref: TEXT,
  not: SCHEMA,
  if: SCHEMA,
  // biome-ignore lint/suspicious/noThenProperty: JSON Schema names the keyword
  then: SCHEMA,
  else: SCHEMA,
  type: requires<TypeName | readonly TypeName[]>(
    `must be one of ${TYPES.join(', ')}, or an array of them`,
    (v) => isType(v) || (isArray(v) && v.length > 0 && v.every(isType)),
  ),
  enum: VALUES,
  const: VALUE,
  anyOf: SCHEMAS,
  oneOf: SCHEMAS,
  allOf: SCHEMAS,
};

/** Enforced keywords that apply to one type. If `type` is absent, it is inferred from them. */
const KEYWORDS_BY_TYPE = {
  object: {
    properties: SCHEMA_MAP,
    patternProperties: SCHEMA_MAP,
    additionalProperties: SCHEMA,
    propertyNames: SCHEMA,
    unevaluatedProperties: SCHEMA,
    dependentRequired: requires<Readonly<Record<string, readonly string[]>>>(
      'must be an object of arrays of strings',
      (v) => isJsonObject(v) && Object.values(v).every((names) => isArray(names) && names.every(isText)),
    ),
    dependentSchemas: SCHEMA_MAP,
    /** Draft 7: each value is a schema or an array of names. */
    dependencies: SCHEMA_MAP,
    required: TEXTS,
    minProperties: COUNT,
    maxProperties: COUNT,
  },
  array: {
    items: requires<unknown>('must be a schema or an array of schemas', (v) => isSchema(v) || isArray(v)),
    prefixItems: SCHEMAS,
    additionalItems: SCHEMA,
    unevaluatedItems: SCHEMA,
    contains: SCHEMA,
    minContains: COUNT,
    maxContains: COUNT,
    minItems: COUNT,
    maxItems: COUNT,
    uniqueItems: requires<boolean>('must be a boolean', (v) => typeof v === 'boolean'),
  },
  string: {
    minLength: COUNT,
    maxLength: COUNT,
    pattern: TEXT,
    format: TEXT,
    contentEncoding: TEXT,
    contentMediaType: TEXT,
    contentSchema: SCHEMA,
  },
  number: {
    minimum: NUMBER,
    maximum: NUMBER,
    exclusiveMinimum: NUMBER,
    exclusiveMaximum: NUMBER,
    multipleOf: requires<JsonNumber>(
      'must be a number above 0',
      (v) => isFiniteNumber(v) && compareNumbers(v, 0) > 0,
    ),
  },
};

const { object, array, string, number } = KEYWORDS_BY_TYPE;
const KEYWORDS = { ...GENERAL_KEYWORDS, ...object, ...array, ...string, ...number };
const CHECKS: ReadonlyMap<string, Check<unknown>> = new Map(Object.entries(KEYWORDS));

/** Rounds counts beyond 2^53, which no text reaches. */
export function withPlainCounts(schema: JsonObject): JsonObject {
  const long = Object.entries(schema).flatMap(([keyword, value]) =>
    isRawNumber(value) && CHECKS.get(keyword) === COUNT && isIntegral(value)
      ? [[keyword, Number(value.rawJSON)]]
      : [],
  );
  return long.length === 0 ? schema : { ...schema, ...Object.fromEntries(long) };
}

/** The enforced keywords of a checked schema. */
export type Keywords = {
  readonly [Keyword in keyof typeof KEYWORDS]?: (typeof KEYWORDS)[Keyword] extends Check<infer Value>
    ? Value
    : never;
};

export type CheckedSchema = JsonObject & Keywords;

/** The type that a keyword applies to; undefined if it applies to all types. */
export function typeOfKeyword(keyword: string): TypeName | undefined {
  return (['object', 'array', 'string', 'number'] as const).find((type) =>
    Object.hasOwn(KEYWORDS_BY_TYPE[type], keyword),
  );
}

/** Keywords of a draft that the compiler cannot enforce. */
const UNSUPPORTED: ReadonlySet<string> = new Set(['$dynamicRef', '$recursiveRef']);

/**
 * Whether a string holds JSON that can be enforced. Beside keywords that limit its text, its content is an
 * annotation.
 */
export function holdsJson({
  contentMediaType: type,
  contentEncoding: encoding = 'binary',
  ...schema
}: JsonObject): boolean {
  const isLimited = ['minLength', 'maxLength', 'pattern', 'format'].some(
    (keyword) => schema[keyword] !== undefined,
  );
  return type === 'application/json' && PLAIN_ENCODINGS.has(String(encoding)) && !isLimited;
}

/** Whether a keyword has no effect, because nothing knows or can enforce its value. */
function isIgnored(keyword: string, value: unknown, schema: JsonObject): boolean {
  if (keyword === 'format') return !isKnownFormat(String(value));
  if (keyword === 'contentEncoding')
    return !CONTENT_ENCODINGS.has(String(value)) && !PLAIN_ENCODINGS.has(String(value));
  return (keyword === 'contentMediaType' || keyword === 'contentSchema') && !holdsJson(schema);
}

const isKnownFormat = (name: string): boolean => FORMATS.has(name) || ANNOTATION_FORMATS.has(name);

/**
 * Whether a name is so close to a keyword that it is probably a typing error. Short keywords are close to
 * many words.
 */
const isTypo = (name: string, keyword: string): boolean => {
  if (keyword.length < 4) return false;
  const limit = keyword.length < 8 ? 1 : 2;
  return leven(name, keyword) <= limit;
};

/**
 * Rejects malformed and unsupported keywords. Annotations are ignored.
 * @returns the keywords and formats that no specification knows, to be ignored
 */
export function checkKeywords(schema: JsonObject, path: string, lenient: boolean): string[] {
  const unknown: string[] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    if (isAnnotation(keyword)) continue;
    const check = CHECKS.get(keyword);
    if (check === undefined) {
      if (!lenient) refuseKnown(keyword, path);
      unknown.push(keyword);
      continue;
    }
    const fault = check(value);
    if (fault !== null) throw schemaError(`${path}/${keyword}`, fault);
    if (isIgnored(keyword, value, schema))
      unknown.push(typeof value === 'string' ? `${keyword}=${value}` : keyword);
  }
  return unknown;
}

/**
 * Refuses keywords that cannot be enforced, and probable typing errors of others. A name that does not begin
 * with a letter, such as `_format`, was changed on purpose.
 */
function refuseKnown(name: string, path: string): void {
  if (UNSUPPORTED.has(name)) throw schemaError(`${path}/${name}`, `the keyword "${name}" is not supported`);
  if (!/^[A-Za-z]/.test(name)) return;
  const meant = [...CHECKS.keys()].find((keyword) => isTypo(name, keyword));
  if (meant !== undefined)
    throw schemaError(
      `${path}/${name}`,
      `the keyword is unknown; write "${meant}", or begin its name with "x-"`,
    );
}

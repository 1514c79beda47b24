import { schemaError } from '../grammar-error.ts';
import { isExact } from './decimal.ts';

/** A JSON object whose keywords are not checked yet. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
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
  '$vocabulary',
  'contentEncoding',
  'contentMediaType',
  'contentSchema',
  // OpenAPI names the branch of a `oneOf` by a tag. `conjunction.ts` makes the tag required.
  'discriminator',
]);

type Check = (value: unknown) => string | null;

/** A short form of a value for error messages. */
export function excerpt(value: unknown): string {
  const text = String(JSON.stringify(value));
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

const requires =
  (message: string, isValid: (value: unknown) => boolean): Check =>
  (value) =>
    isValid(value) ? null : `${message}, received ${excerpt(value)}`;
const isArray = (value: unknown): value is unknown[] => Array.isArray(value);
const isText = (value: unknown): boolean => typeof value === 'string';

const SCHEMA: Check = requires('must be a schema', (v) => typeof v === 'boolean' || isJsonObject(v));
const SCHEMAS: Check = requires('must be a non-empty array of schemas', (v) => isArray(v) && v.length > 0);
const SCHEMA_MAP: Check = requires('must be an object', isJsonObject);
const COUNT: Check = requires('must be a non-negative integer', (v) => Number.isInteger(v) && Number(v) >= 0);
const NUMBER: Check = requires('must be a finite number', (v) => Number.isFinite(v));
const TEXT: Check = requires('must be a string', isText);
const TEXTS: Check = requires('must be an array of strings', (v) => isArray(v) && v.every(isText));

export const TYPES = ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object'] as const;
export type TypeName = (typeof TYPES)[number];
const isType = (value: unknown): boolean => TYPES.some((type) => type === value);

/** Keywords that apply to one type. If `type` is absent, it is inferred from them. */
export const TYPE_OF_KEYWORD: Readonly<Record<string, TypeName>> = {
  properties: 'object',
  patternProperties: 'object',
  additionalProperties: 'object',
  propertyNames: 'object',
  required: 'object',
  minProperties: 'object',
  maxProperties: 'object',
  items: 'array',
  prefixItems: 'array',
  additionalItems: 'array',
  minItems: 'array',
  maxItems: 'array',
  uniqueItems: 'array',
  minLength: 'string',
  maxLength: 'string',
  pattern: 'string',
  format: 'string',
  minimum: 'number',
  maximum: 'number',
  exclusiveMinimum: 'number',
  exclusiveMaximum: 'number',
  multipleOf: 'number',
};

/** The enforced keywords of a checked schema. Subschemas are checked when they are visited. */
export interface Keywords {
  readonly $ref?: string;
  readonly type?: TypeName | readonly TypeName[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly unknown[];
  readonly oneOf?: readonly unknown[];
  readonly allOf?: readonly unknown[];
  readonly properties?: JsonObject;
  readonly patternProperties?: JsonObject;
  readonly additionalProperties?: unknown;
  readonly propertyNames?: unknown;
  readonly required?: readonly string[];
  readonly minProperties?: number;
  readonly maxProperties?: number;
  /** A schema or an array of schemas. */
  readonly items?: unknown;
  readonly prefixItems?: readonly unknown[];
  readonly additionalItems?: unknown;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
}

export type CheckedSchema = JsonObject & Keywords;

/** The check of each keyword's value. Returns the error message, or null. */
const KEYWORD_CHECKS: Readonly<Record<keyof Keywords, Check>> = {
  $ref: TEXT,
  type: requires(
    `must be one of ${TYPES.join(', ')}, or an array of them`,
    (v) => isType(v) || (isArray(v) && v.length > 0 && v.every(isType)),
  ),
  enum: (v) => (isArray(v) && v.length > 0 ? inexactNumber(v) : 'must be a non-empty array of values'),
  const: inexactNumber,
  anyOf: SCHEMAS,
  oneOf: SCHEMAS,
  allOf: SCHEMAS,
  properties: SCHEMA_MAP,
  patternProperties: SCHEMA_MAP,
  additionalProperties: SCHEMA,
  propertyNames: SCHEMA,
  required: TEXTS,
  minProperties: COUNT,
  maxProperties: COUNT,
  items: requires(
    'must be a schema or an array of schemas',
    (v) => typeof v === 'boolean' || (typeof v === 'object' && v !== null),
  ),
  prefixItems: SCHEMAS,
  additionalItems: SCHEMA,
  minItems: COUNT,
  maxItems: COUNT,
  uniqueItems: requires('must be a boolean', (v) => typeof v === 'boolean'),
  minLength: COUNT,
  maxLength: COUNT,
  pattern: TEXT,
  format: TEXT,
  minimum: NUMBER,
  maximum: NUMBER,
  exclusiveMinimum: NUMBER,
  exclusiveMaximum: NUMBER,
  multipleOf: requires('must be a number above 0', (v) => Number.isFinite(v) && Number(v) > 0),
};
const ENFORCED: ReadonlyMap<string, Check> = new Map(Object.entries(KEYWORD_CHECKS));

/** Reports integers that JSON.parse may have rounded: the generator must write numbers exactly. */
function inexactNumber(value: unknown): string | null {
  if (typeof value === 'number')
    return isExact(value)
      ? null
      : 'integers of more than 15 digits beyond 2^53 cannot be represented exactly; use a string';
  if (typeof value !== 'object' || value === null) return null;
  for (const inner of Object.values(value)) {
    const fault = inexactNumber(inner);
    if (fault !== null) return fault;
  }
  return null;
}

/** Rejects malformed and unsupported keywords. Only annotations are ignored. */
export function checkKeywords(schema: JsonObject, path: string): asserts schema is CheckedSchema {
  for (const [keyword, value] of Object.entries(schema)) {
    if (ANNOTATIONS.has(keyword) || keyword.startsWith('x-')) continue;
    const check = ENFORCED.get(keyword);
    if (!check) throw schemaError(`${path}/${keyword}`, `the keyword "${keyword}" is not supported`);
    const fault = check(value);
    if (fault !== null) throw schemaError(`${path}/${keyword}`, fault);
  }
}

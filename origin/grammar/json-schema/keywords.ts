import { schemaError } from '../grammar-error.ts';
import { isExact } from './decimal.ts';

/** Any JSON object in a schema's place; its keywords may still be anything. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Keywords that say nothing about which values are valid. */
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
  // OpenAPI's hint which branch of a oneOf is meant; the branches say it themselves, by a tag that it makes required.
  'discriminator',
]);

type Check = (value: unknown) => string | null;

const when =
  (message: string, good: (value: unknown) => boolean): Check =>
  (value) =>
    good(value) ? null : message;
const isArray = (value: unknown): value is unknown[] => Array.isArray(value);
const isText = (value: unknown): boolean => typeof value === 'string';

const SCHEMA: Check = when('must be a schema', (v) => typeof v === 'boolean' || isJsonObject(v));
const SCHEMAS: Check = when('must be a non-empty array of schemas', (v) => isArray(v) && v.length > 0);
const SCHEMA_MAP: Check = when('must be an object', isJsonObject);
const COUNT: Check = when('must be a non-negative integer', (v) => Number.isInteger(v) && Number(v) >= 0);
const NUMBER: Check = when('must be a finite number', (v) => Number.isFinite(v));
const TEXT: Check = when('must be a string', isText);
const TEXTS: Check = when('must be an array of strings', (v) => isArray(v) && v.every(isText));

export const TYPES = ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object'] as const;
export type TypeName = (typeof TYPES)[number];
const isType = (value: unknown): boolean => TYPES.some((type) => type === value);

/** Keywords that speak of one type only; where no schema names a type, they name it. */
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

/** What a checked schema has under the keywords that are enforced; schemas inside it are checked when they are visited. */
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
  /** A schema, or an array of them. */
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

/** The form that the value of each must have. */
const KEYWORD_CHECKS: Readonly<Record<keyof Keywords, Check>> = {
  $ref: TEXT,
  type: when(
    `must be one of ${TYPES.join(', ')}, or an array of them`,
    (v) => isType(v) || (isArray(v) && v.length > 0 && v.every(isType)),
  ),
  enum: (v) => (isArray(v) && v.length > 0 ? inexactNumber(v) : 'must be a non-empty array'),
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
  items: when(
    'must be a schema or an array of schemas',
    (v) => typeof v === 'boolean' || (typeof v === 'object' && v !== null),
  ),
  prefixItems: SCHEMAS,
  additionalItems: SCHEMA,
  minItems: COUNT,
  maxItems: COUNT,
  uniqueItems: when('must be a boolean', (v) => typeof v === 'boolean'),
  minLength: COUNT,
  maxLength: COUNT,
  pattern: TEXT,
  format: TEXT,
  minimum: NUMBER,
  maximum: NUMBER,
  exclusiveMinimum: NUMBER,
  exclusiveMaximum: NUMBER,
  multipleOf: when('must be a number above 0', (v) => Number.isFinite(v) && Number(v) > 0),
};
const ENFORCED: ReadonlyMap<string, Check> = new Map(Object.entries(KEYWORD_CHECKS));

/** Numbers to be written as they are given must be known as they were given. */
function inexactNumber(value: unknown): string | null {
  if (typeof value === 'number')
    return isExact(value) ? null : 'integers of more than 15 digits beyond 2^53 cannot be kept exactly';
  if (typeof value !== 'object' || value === null) return null;
  for (const inner of Object.values(value)) {
    const fault = inexactNumber(inner);
    if (fault !== null) return fault;
  }
  return null;
}

/** Refuses what is malformed and what cannot be enforced; nothing is ignored except annotations. */
export function checkKeywords(schema: JsonObject, path: string): asserts schema is CheckedSchema {
  for (const [keyword, value] of Object.entries(schema)) {
    if (ANNOTATIONS.has(keyword) || keyword.startsWith('x-')) continue;
    const check = ENFORCED.get(keyword);
    if (!check) throw schemaError(`${path}/${keyword}`, `the keyword "${keyword}" is not supported`);
    const fault = check(value);
    if (fault !== null) throw schemaError(`${path}/${keyword}`, fault);
  }
}

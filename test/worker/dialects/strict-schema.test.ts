import { describe, expect, test } from 'vitest';
import { dialectName } from '../../../shared/tenant.ts';
import { strictViolation } from '../../../worker/dialects/strict-schema.ts';
import { parse, refusal } from './parsing.ts';

const closed = (properties: Record<string, unknown>, required = Object.keys(properties)) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const OPEN = { type: 'object' };
const STRICT = closed({
  a: { type: 'string' },
  b: { type: ['object', 'null'], additionalProperties: false },
});

describe('strict mode accepts', () => {
  test.each([
    ['an object that is closed and requires its properties', STRICT],
    ['values that are not objects', closed({ a: { type: ['string', 'null'] } })],
    ['properties whose names are keywords', closed({ items: { type: 'string' }, $defs: { type: 'null' } })],
    ['an enumeration of objects', closed({ a: { enum: [{ type: 'object' }] } })],
    ['references', closed({ next: { $ref: '#' } })],
    ['schemas that are booleans', closed({ a: true })],
  ])('%s', (_, schema) => {
    expect(strictViolation(schema)).toBeNull();
  });
});

const MUST_BE_FALSE = "'additionalProperties' must be false";

describe('strict mode rejects', () => {
  test.each([
    ['an object that does not mention additionalProperties', OPEN, MUST_BE_FALSE],
    ['an object with additionalProperties', { ...STRICT, additionalProperties: true }, MUST_BE_FALSE],
    ['a nullable object', { type: ['object', 'null'] }, MUST_BE_FALSE],
    ['properties without a type', { properties: { a: {} }, required: ['a'] }, MUST_BE_FALSE],
    ['an optional property', closed({ a: {}, b: {} }, ['a']), "'required' must contain 'b'"],
    ['properties without required', { ...STRICT, required: undefined }, "'required' must contain 'a'"],
  ])('%s', (_, schema, reason) => {
    expect(strictViolation(schema)).toBe(`${reason} at #`);
  });

  test.each([
    ['properties', closed({ 'a/b': OPEN }), '#/properties/a~1b'],
    ['items', closed({ a: { type: 'array', items: OPEN } }), '#/properties/a/items'],
    ['prefixItems', closed({ a: { type: 'array', prefixItems: [OPEN] } }), '#/properties/a/prefixItems/0'],
    ['anyOf', closed({ a: { anyOf: [{ type: 'null' }, OPEN] } }), '#/properties/a/anyOf/1'],
    ['$defs', { ...STRICT, $defs: { d: OPEN } }, '#/$defs/d'],
    ['definitions', { ...STRICT, definitions: { d: OPEN } }, '#/definitions/d'],
    [
      'all of these',
      closed({ a: { items: { anyOf: [closed({ b: OPEN })] } } }),
      '#/properties/a/items/anyOf/0/properties/b',
    ],
  ])('an open object in %s, with its path', (_, schema, path) => {
    expect(strictViolation(schema)).toBe(`${MUST_BE_FALSE} at ${path}`);
    expect(
      strictViolation(
        JSON.parse(JSON.stringify(schema).replaceAll(JSON.stringify(OPEN), JSON.stringify(STRICT))),
      ),
    ).toBeNull();
  });
});

describe('strict mode limits', () => {
  const nested = (levels: number): object => closed(levels === 1 ? {} : { a: nested(levels - 1) });
  const names = (count: number, length = 1) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`${i}`.padStart(length, 'p'), {}]));
  const texts = (count: number, length = 1) =>
    Array.from({ length: count }, (_, i) => `${i}`.padStart(length, 'v'));
  const half = texts(500);

  const rows: readonly (readonly [name: string, within: object, beyond: object, message: string])[] = [
    ['the root to an object', closed({}), { type: 'string' }, "'type' must be 'object', .* at #$"],
    ['the root to one object', closed({}), { ...STRICT, anyOf: [STRICT] }, "without 'anyOf' .* at #$"],
    ['nesting', nested(10), nested(11), 'deeper than 10 levels at #(/properties/a){10}$'],
    ['properties', closed(names(5000)), closed(names(5001)), 'at most 5000 properties, exceeded at #$'],
    [
      'properties of all objects together',
      closed({ a: closed(names(2499)), b: closed(names(2499)) }),
      closed({ a: closed(names(2499)), b: closed(names(2500)) }),
      '5000 properties, exceeded at #/properties/b$',
    ],
    [
      'enum values',
      closed({ a: { enum: half }, b: { items: { enum: half } } }),
      closed({ a: { enum: half }, b: { items: { enum: [...half, null] } } }),
      'at most 1000 enum values, exceeded at #/properties/b/items$',
    ],
    [
      'texts of a long enum',
      closed({ a: { enum: texts(300, 50) }, b: { enum: texts(250, 400) } }),
      closed({ a: { enum: [...texts(300, 50), 'v'] } }),
      'at most 15000 characters, received 15001 at #/properties/a$',
    ],
    [
      'characters of names, enums and constants',
      {
        ...closed(names(999, 100)),
        $defs: { [''.padEnd(20_000, 'd')]: { enum: ['e'.repeat(99)], const: 'c' } },
      },
      {
        ...closed(names(999, 100)),
        $defs: { [''.padEnd(20_000, 'd')]: { enum: ['e'.repeat(99)], const: 'cc' } },
      },
      'at most 120000 characters, exceeded at #/\\$defs/d+$',
    ],
    ...['allOf', 'not', 'dependentRequired', 'dependentSchemas', 'if', 'then', 'else'].map(
      (keyword) =>
        [
          `keywords, without ${keyword}`,
          closed({ a: {} }),
          closed({ a: { [keyword]: {} } }),
          `'${keyword}' is not permitted at #/properties/a$`,
        ] as const,
    ),
  ];

  test.each(rows)('%s', (_, within, beyond, message) => {
    expect(strictViolation(within)).toBeNull();
    expect(strictViolation(beyond)).toMatch(new RegExp(message));
  });
});

describe('a response_format with strict', () => {
  const format = (strict: boolean | null, schema: unknown) => ({
    response_format: { type: 'json_schema', json_schema: { name: 'n', strict, schema } },
  });
  const schema = closed({ a: OPEN });

  test('is checked only in the dialect openai, also as text', () => {
    const param = 'response_format.json_schema.schema';
    for (const value of [schema, JSON.stringify(schema)]) {
      expect(refusal(format(true, value))).toMatchObject({
        code: 'invalid_json_schema',
        param,
        message: `Invalid '${param}': with 'strict', ${MUST_BE_FALSE} at #/properties/a.`,
      });
    }
    for (const dialect of dialectName.options.filter((name) => name !== 'openai'))
      expect(refusal(format(true, schema), dialect), dialect).toBeNull();
  });

  test('is checked only if strict is true', () => {
    expect(refusal(format(false, schema))).toBeNull();
    expect(refusal(format(null, schema))).toBeNull();
    expect(parse(format(true, STRICT)).generation.constraint).toEqual({ type: 'json_schema', value: STRICT });
  });
});

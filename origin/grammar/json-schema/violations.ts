import { compareNumbers, isJsonNumber, type JsonNumber } from '../rules/decimal.ts';
import { schemaError } from '../rules/grammar-error.ts';
import {
  type Conjunction,
  conjunctionOf,
  derived,
  type KeywordNode,
  NOT_MULTIPLE_OF,
  SOME_PROPERTY,
  type SomeProperty,
} from './conjunction.ts';
import { CONTENT_ENCODINGS, FORMATS, noneOf, widest } from './formats.ts';
import { type Keywords, TYPES, type TypeName } from './keywords.ts';
import type { SchemaDocument } from './schema-document.ts';

/** For each of several conjunctions, the indices of the others that it may overlap with. */
export type RivalsOf = (branches: readonly Conjunction[]) => readonly (readonly number[])[];

export const allOthers: RivalsOf = (branches) =>
  branches.map((_, i) => [...branches.keys()].filter((j) => j !== i));

/** Ways to violate one keyword; null if the compiler cannot express them. */
type Violations<Keyword extends keyof Keywords> = (
  value: Required<Keywords>[Keyword],
  node: KeywordNode,
  document: SchemaDocument,
  rivalsOf: RivalsOf,
) => readonly Conjunction[] | null;

/**
 * Returns the values that do not satisfy a schema, as conjunctions of which one must hold. They may leave out
 * values that violate only a keyword whose violations cannot be expressed, such as `uniqueItems`.
 * @throws GrammarError if nothing is left
 */
export function violationsOf(
  node: KeywordNode,
  document: SchemaDocument,
  rivalsOf: RivalsOf,
): readonly Conjunction[] {
  const branches: Conjunction[] = [];
  let unsupported: string | null = null;
  for (const keyword of Object.keys(node.schema)) {
    const violations = VIOLATIONS[keyword as keyof Keywords] as Violations<keyof Keywords> | undefined;
    if (violations === undefined) continue;
    const violating = violations(node.schema[keyword as keyof Keywords]!, node, document, rivalsOf);
    if (violating === null) unsupported ??= keyword;
    else branches.push(...violating);
  }
  if (branches.length === 0 && unsupported !== null)
    throw schemaError(`${node.path}/${unsupported}`, 'cannot be negated');
  return branches;
}

/** Keywords whose schemas may evaluate properties and items of the same value. */
const APPLICATORS = ['$ref', 'allOf', 'anyOf', 'oneOf', 'if', 'dependentSchemas', 'dependencies'] as const;

const hasApplicators = ({ schema }: KeywordNode): boolean =>
  APPLICATORS.some((keyword) => schema[keyword] !== undefined);

const VIOLATIONS: { readonly [Keyword in keyof Keywords]?: Violations<Keyword> } = {
  $ref: (reference, { path }, document) => [
    [{ node: document.resolve(reference, `${path}/$ref`), part: 'not' }],
  ],
  not: (_, node, document) => [conjunctionOf(document.child(node, 'not'))],
  allOf: (list, node, document) =>
    list.map((_, i) => [{ node: document.child(node, 'allOf', i), part: 'not' }]),
  anyOf: (list, node, document) => [
    list.map((_, i) => ({ node: document.child(node, 'anyOf', i), part: 'not' })),
  ],
  oneOf: (list, node, document, rivalsOf) => {
    const branches = list.map((_, i) => document.child(node, 'oneOf', i));
    const rivals = rivalsOf(branches.map((branch) => conjunctionOf(branch)));
    const pairs = branches.flatMap((a, i) =>
      rivals[i]!.filter((j) => j > i).map((j) => conjunctionOf(a, branches[j]!)),
    );
    return [branches.map((branch) => ({ node: branch, part: 'not' as const })), ...pairs];
  },
  if: (_, node, document) => {
    const condition = document.child(node, 'if');
    const violated = (keyword: 'then' | 'else', part: 'whole' | 'not'): Conjunction[] =>
      node.schema[keyword] === undefined
        ? []
        : [
            [
              { node: condition, part },
              { node: document.child(node, keyword), part: 'not' },
            ],
          ];
    return [...violated('then', 'whole'), ...violated('else', 'not')];
  },
  type: (type, node) => {
    const allowed = new Set([type].flat());
    const others = typesBut(allowed);
    const isIntegral = allowed.has('integer') && !allowed.has('number');
    const types = isIntegral ? others.filter((type) => type !== 'number') : others;
    const fractions = { type: 'number', [NOT_MULTIPLE_OF]: 1 } as const;
    return [
      ...(types.length === 0 ? [] : [[derived(node, 'not type', { type: types })]]),
      ...(isIntegral ? [[derived(node, 'not integer', fractions)]] : []),
    ];
  },
  enum: (values, node) => othersThan(values, node),
  const: (value, node) => othersThan([value], node),
  required: (keys, node) =>
    keys.map((key) => [
      derived(node, `not required ${key}`, {
        type: 'object',
        properties: { [key]: false },
        additionalProperties: true,
      }),
    ]),
  properties: (properties, node, document) =>
    Object.keys(properties).map((key) => {
      document.child(node, 'properties', key);
      const property = { [key]: { not: properties[key] } };
      const schema = {
        type: 'object',
        required: [key],
        properties: property,
        additionalProperties: true,
      } as const;
      return [derived(node, `not properties ${key}`, schema)];
    }),
  minProperties: (min, node) => opposite(node, 'minProperties', { type: 'object', maxProperties: min - 1 }),
  maxProperties: (max, node) => opposite(node, 'maxProperties', { type: 'object', minProperties: max + 1 }),
  dependentRequired: (dependencies, node) =>
    Object.entries(dependencies).flatMap(([key, names]) => missingDependents(node, key, names)),
  dependencies: (dependencies, node, document) =>
    Object.entries(dependencies).flatMap(([key, dependent]) =>
      Array.isArray(dependent)
        ? missingDependents(node, key, dependent)
        : [withKey(node, key, { node: document.child(node, 'dependencies', key), part: 'not' })],
    ),
  dependentSchemas: (dependencies, node, document) =>
    Object.keys(dependencies).map((key) =>
      withKey(node, key, { node: document.child(node, 'dependentSchemas', key), part: 'not' }),
    ),
  patternProperties: (patterns, node, document) =>
    Object.keys(patterns).map((pattern) =>
      withSome(node, `patternProperties ${pattern}`, {
        names: [derived(node, `name ${pattern}`, { type: 'string', pattern })],
        value: [{ node: document.child(node, 'patternProperties', pattern), part: 'not' }],
      }),
    ),
  additionalProperties: (_, node, document) => [someOther(node, 'additionalProperties', document)],
  propertyNames: (_, node, document) => [
    withSome(node, 'propertyNames', {
      names: [{ node: document.child(node, 'propertyNames'), part: 'not' }],
      value: [],
    }),
  ],
  items: (items, node, document) => {
    if (Array.isArray(items)) return items.map((_, i) => violatedItem(node, i, document, 'items', i));
    if (node.schema.prefixItems)
      return [violatedItem(node, node.schema.prefixItems.length, document, 'items')];
    document.child(node, 'items');
    return opposite(node, 'items', { type: 'array', contains: { not: items } });
  },
  prefixItems: (items, node, document) =>
    items.map((_, i) => violatedItem(node, i, document, 'prefixItems', i)),
  additionalItems: (_, node, document) =>
    Array.isArray(node.schema.items)
      ? [violatedItem(node, node.schema.items.length, document, 'additionalItems')]
      : [],
  unevaluatedItems: (_, node, document) => {
    const { prefixItems, items = prefixItems ?? [], contains, additionalItems } = node.schema;
    if (hasApplicators(node) || contains !== undefined) return null;
    if (!Array.isArray(items) || additionalItems !== undefined) return [];
    return [violatedItem(node, items.length, document, 'unevaluatedItems')];
  },
  unevaluatedProperties: (_, node, document) => {
    if (hasApplicators(node)) return null;
    if (node.schema.additionalProperties !== undefined) return [];
    return [someOther(node, 'unevaluatedProperties', document)];
  },
  contains: (contains, node, document) => {
    const { minContains = 1, maxContains = Number.POSITIVE_INFINITY } = node.schema;
    document.child(node, 'contains');
    const fewer = minContains === 0 ? [] : [{ minContains: 0, maxContains: minContains - 1 }];
    const more = Number.isFinite(maxContains) ? [{ minContains: maxContains + 1 }] : [];
    return [...fewer, ...more].map((bounds, i) => [
      derived(node, `not contains ${i}`, { type: 'array', contains, ...bounds }),
    ]);
  },
  minItems: (min, node) => opposite(node, 'minItems', { type: 'array', maxItems: min - 1 }),
  maxItems: (max, node) => opposite(node, 'maxItems', { type: 'array', minItems: max + 1 }),
  uniqueItems: (unique) => (unique ? null : []),
  minLength: (min, node) => opposite(node, 'minLength', { type: 'string', maxLength: min - 1 }),
  maxLength: (max, node) => opposite(node, 'maxLength', { type: 'string', minLength: max + 1 }),
  pattern: (pattern, node) =>
    opposite(node, 'pattern', { type: 'string', pattern: `^(?![\\s\\S]*(?:${pattern}))` }),
  format: (format, node) => notMatching(node, 'format', widest(format, FORMATS)),
  contentEncoding: (encoding, node) =>
    notMatching(node, 'contentEncoding', widest(encoding, CONTENT_ENCODINGS)),
  minimum: (minimum, node) => opposite(node, 'minimum', { type: 'number', exclusiveMaximum: minimum }),
  maximum: (maximum, node) => opposite(node, 'maximum', { type: 'number', exclusiveMinimum: maximum }),
  exclusiveMinimum: (minimum, node) =>
    opposite(node, 'exclusiveMinimum', { type: 'number', maximum: minimum }),
  exclusiveMaximum: (maximum, node) =>
    opposite(node, 'exclusiveMaximum', { type: 'number', minimum: maximum }),
  multipleOf: (divisor, node) => opposite(node, 'multipleOf', { type: 'number', [NOT_MULTIPLE_OF]: divisor }),
};

/** The values that violate a keyword are those of another schema. */
const opposite = (node: KeywordNode, keyword: string, schema: KeywordNode['schema']): Conjunction[] => [
  [derived(node, `not ${keyword}`, schema)],
];

/** Beside a pattern, formats and encodings are annotations. */
function notMatching(node: KeywordNode, keyword: string, source: string | undefined): Conjunction[] {
  if (source === undefined || node.schema.pattern !== undefined) return [];
  return opposite(node, keyword, { type: 'string', pattern: `^(?!(?:${source})$)` });
}

function withSome(node: KeywordNode, name: string, some: SomeProperty): Conjunction {
  return [derived(node, `not ${name}`, { type: 'object', [SOME_PROPERTY]: some })];
}

/**
 * Objects with a property that is neither declared nor matches a pattern, and violates the schema of those.
 */
function someOther(
  node: KeywordNode,
  keyword: 'additionalProperties' | 'unevaluatedProperties',
  document: SchemaDocument,
): Conjunction {
  const { properties = {}, patternProperties = {} } = node.schema;
  const names = [
    derived(node, 'declared', { type: 'string', enum: Object.keys(properties) }),
    ...Object.keys(patternProperties).map((pattern) =>
      derived(node, `name ${pattern}`, { type: 'string', pattern }),
    ),
  ];
  return withSome(node, keyword, {
    names: names.map((name) => ({ node: name.node, part: 'not' })),
    value: [{ node: document.child(node, keyword), part: 'not' }],
  });
}

/** Arrays whose item at an index violates the schema at a keyword, or the one in its list. */
function violatedItem(
  node: KeywordNode,
  index: number,
  document: SchemaDocument,
  ...keys: readonly (string | number)[]
): Conjunction {
  const { schema } = document.child(node, ...keys);
  const prefixItems = [...Array.from({ length: index }, () => true), { not: schema }];
  return [derived(node, `not ${keys.join(' ')}`, { type: 'array', minItems: index + 1, prefixItems })];
}

function withKey(node: KeywordNode, key: string, condition: Conjunction[number]): Conjunction {
  return [derived(node, `with ${key}`, { type: 'object', required: [key] }), condition];
}

function missingDependents(node: KeywordNode, key: string, names: readonly string[]): Conjunction[] {
  return names.map((name) =>
    withKey(
      node,
      key,
      derived(node, `without ${name}`, { properties: { [name]: false }, additionalProperties: true }),
    ),
  );
}

/** Values that are not listed. Arrays and objects are left out if one of them is listed. */
function othersThan(values: readonly unknown[], node: KeywordNode): Conjunction[] {
  const listed = new Set(values.map(typeOfValue));
  const others = typesBut(listed);
  const texts = values.filter((value) => typeof value === 'string');
  const truths = [true, false].filter((value) => !values.includes(value));
  const numbers = values.filter(isJsonNumber).sort(compareNumbers);
  return [
    ...(others.length === 0 ? [] : [derived(node, 'not type', { type: others })]),
    ...(texts.length === 0 ? [] : [derived(node, 'not text', { type: 'string', pattern: noneOf(texts) })]),
    ...(listed.has('boolean') && truths.length > 0 ? [derived(node, 'not boolean', { enum: truths })] : []),
    ...(numbers.length === 0 ? [] : gaps(numbers)).map((gap, i) => derived(node, `not number ${i}`, gap)),
  ].map((part) => [part]);
}

/** The types without these; `number` covers `integer`. */
const typesBut = (types: ReadonlySet<TypeName>): readonly TypeName[] =>
  TYPES.filter((type) => type !== 'integer' && !types.has(type));

function typeOfValue(value: unknown): TypeName {
  if (value === null) return 'null';
  if (isJsonNumber(value)) return 'number';
  return Array.isArray(value) ? 'array' : (typeof value as TypeName);
}

/** The numbers between sorted numbers, and those outside of them. */
function gaps(numbers: readonly JsonNumber[]) {
  return [...numbers, null].map((value, i) => ({
    type: 'number' as const,
    ...(i === 0 ? {} : { exclusiveMinimum: numbers[i - 1]! }),
    ...(value === null ? {} : { exclusiveMaximum: value }),
  }));
}

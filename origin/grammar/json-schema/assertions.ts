import { compareNumbers, type JsonNumber } from '../rules/decimal.ts';
import { canonical } from '../rules/exact-json.ts';
import { type KeywordNodes, NOT_MULTIPLE_OF } from './conjunction.ts';
import { type Keywords, TYPES, type TypeName, typeOfKeyword } from './keywords.ts';

/**
 * The types that the schemas allow. If `number` is allowed, `integer` is omitted.
 * @param isOpen whether schemas without `type` allow all types, as JSON Schema says; else those that their
 * keywords imply
 */
export function typesOf(nodes: KeywordNodes, isOpen = false): ReadonlySet<TypeName> {
  const named = nodes.flatMap(({ schema: { type } }) =>
    type === undefined ? [] : [typeof type === 'string' ? [type] : type],
  );
  if (named.length === 0) return isOpen ? ALL_TYPES : impliedTypes(nodes);
  let types = new Set<TypeName>(TYPES);
  for (const list of named) {
    const allowed = new Set(list.includes('number') ? [...list, 'integer'] : list);
    types = new Set([...types].filter((type) => allowed.has(type)));
  }
  if (types.has('number')) types.delete('integer');
  return types;
}

function impliedTypes(nodes: KeywordNodes): ReadonlySet<TypeName> {
  const implied = nodes.flatMap(({ schema }) =>
    Object.keys(schema).flatMap((keyword) => typeOfKeyword(keyword) ?? []),
  );
  return implied.length > 0 ? new Set(implied) : ALL_TYPES;
}

const ALL_TYPES: ReadonlySet<TypeName> = new Set(TYPES.filter((type) => type !== 'integer'));

/** The values that `enum` and `const` allow; null if neither is used. Other keywords are not checked. */
export function enumeratedValues(nodes: KeywordNodes): readonly unknown[] | null {
  const lists = nodes.flatMap(({ schema }) => [
    ...(schema.enum === undefined ? [] : [schema.enum]),
    ...(Object.hasOwn(schema, 'const') ? [[schema.const]] : []),
  ]);
  const [first, ...others] = lists;
  if (first === undefined) return null;
  const sets = others.map((list) => new Set(list.map(canonical)));
  const distinct = new Map(first.map((value) => [canonical(value), value]));
  return [...distinct].flatMap(([key, value]) => (sets.every((set) => set.has(key)) ? [value] : []));
}

export function isEqual(a: unknown, b: unknown): boolean {
  return canonical(a) === canonical(b);
}

/** The combined number keywords of several schemas. */
export interface NumberAssertions {
  readonly integer: boolean;
  readonly minimum: Bound | null;
  readonly maximum: Bound | null;
  /** The values of `multipleOf` with their paths. */
  readonly multiples: readonly Multiple[];
  /** Of these, the number may not be a multiple. */
  readonly nonMultiples: readonly Multiple[];
}

export interface Multiple {
  readonly value: JsonNumber;
  readonly path: string;
}

export interface Bound {
  readonly value: JsonNumber;
  readonly exclusive: boolean;
}

export function numberAssertions(nodes: KeywordNodes, integer: boolean): NumberAssertions {
  const bounds = (keyword: BoundKeyword, exclusive: boolean): Bound[] =>
    nodes.flatMap(({ schema: { [keyword]: value } }) => (value === undefined ? [] : [{ value, exclusive }]));
  const tightest = (list: readonly Bound[], sign: 1 | -1): Bound | null =>
    list.reduce<Bound | null>((best, bound) => {
      const tighter = best === null ? 1 : sign * compareNumbers(bound.value, best.value);
      return tighter > 0 || (tighter === 0 && bound.exclusive) ? bound : best;
    }, null);
  return {
    integer,
    minimum: tightest([...bounds('minimum', false), ...bounds('exclusiveMinimum', true)], 1),
    maximum: tightest([...bounds('maximum', false), ...bounds('exclusiveMaximum', true)], -1),
    multiples: multiplesIn(nodes, 'multipleOf'),
    nonMultiples: multiplesIn(nodes, NOT_MULTIPLE_OF),
  };
}

function multiplesIn(nodes: KeywordNodes, keyword: 'multipleOf' | typeof NOT_MULTIPLE_OF): Multiple[] {
  return nodes.flatMap(({ schema: { [keyword]: value }, path }) =>
    value === undefined ? [] : [{ value, path: `${path}/multipleOf` }],
  );
}

/** The range that two count keywords such as `minItems` and `maxItems` allow. */
export function countRange(
  nodes: KeywordNodes,
  minimum: CountKeyword,
  maximum: CountKeyword,
): { min: number; max: number } {
  return {
    min: Math.max(0, ...valuesOf(nodes, minimum)),
    max: Math.min(Number.POSITIVE_INFINITY, ...valuesOf(nodes, maximum)),
  };
}

type BoundKeyword = 'minimum' | 'maximum' | 'exclusiveMinimum' | 'exclusiveMaximum';

/** Keywords whose value is a count. */
type CountKeyword = {
  [Keyword in keyof Keywords]-?: Required<Keywords>[Keyword] extends number ? Keyword : never;
}[keyof Keywords];

const valuesOf = (nodes: KeywordNodes, keyword: CountKeyword): number[] =>
  nodes.flatMap(({ schema }) => schema[keyword] ?? []);

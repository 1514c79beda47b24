import { type Dfa, matches, matchesNothing } from '../automaton/dfa.ts';
import { schemaError } from '../grammar-error.ts';
import { enumeratedValues } from './assertions.ts';
import { all, type Conjunction, expand, type Own } from './conjunction.ts';
import type { SchemaContext } from './schema-context.ts';
import type { SchemaDocument, SchemaNode } from './schema-document.ts';
import { stringLanguage } from './string-schema.ts';

const MAX_PATTERNS = 6;

/** Which keys an object may have, and what each demands of its value. */
export interface ObjectKeys {
  /** In the order of generation. */
  readonly declared: readonly {
    readonly key: string;
    readonly required: boolean;
    readonly value: Conjunction;
  }[];
  /** Groups of keys that are not declared; `keys` null = every string. */
  readonly others: readonly { readonly keys: Dfa | null; readonly value: Conjunction }[];
}

/** The schemas that the value of a key must satisfy; the key's own schema and its pattern's, else the additional one. */
export function valueDemands(own: Own, key: string, context: SchemaContext): Conjunction {
  return all(
    ...own.flatMap((node) => {
      const named = isDeclared(node, key) ? [context.document.child(node, 'properties', key)] : [];
      const matching = patternsOf(node, context).filter(({ language }) => matches(language, key));
      const found = [...named, ...matching.map(({ value }) => value)];
      return found.length > 0 ? found : additional(node, context.document);
    }),
  );
}

export function requiredKeys(own: Own): ReadonlySet<string> {
  return new Set(own.flatMap(({ schema }) => schema.required ?? []));
}

export function objectKeys(own: Own, context: SchemaContext): ObjectKeys {
  const required = requiredKeys(own);
  const names = new Set([...own.flatMap(({ schema }) => Object.keys(schema.properties ?? {})), ...required]);
  const allowed = keyLanguage(own, context);
  const declared = [...names].map((key) => {
    const named = allowed === null || matches(allowed, key);
    return { key, required: required.has(key), value: named ? valueDemands(own, key, context) : NEVER };
  });
  return { declared, others: otherKeys(own, [...names], allowed, context) };
}

const NEVER: Conjunction = [{ node: { path: 'never', schema: false }, part: 'all' }];

function isDeclared({ schema }: Own[number], key: string): boolean {
  return schema.properties !== undefined && Object.hasOwn(schema.properties, key);
}

function patternsOf(node: Own[number], context: SchemaContext): { language: Dfa; value: SchemaNode }[] {
  return Object.keys(node.schema.patternProperties ?? {}).map((pattern) => ({
    language: context.languages.pattern(pattern, `${node.path}/patternProperties/${pattern}`),
    value: context.document.child(node, 'patternProperties', pattern),
  }));
}

function additional(node: Own[number], document: SchemaDocument): SchemaNode[] {
  return node.schema.additionalProperties === undefined ? [] : [document.child(node, 'additionalProperties')];
}

/** The schemas that every key must satisfy. */
export function keyDemands(own: Own, document: SchemaDocument): Conjunction {
  const naming = own.filter(({ schema }) => schema.propertyNames !== undefined);
  return all(...naming.map((node) => document.child(node, 'propertyNames')));
}

/** The keys that every `propertyNames` allows; null = all. */
function keyLanguage(own: Own, context: SchemaContext): Dfa | null {
  const demands = keyDemands(own, context.document);
  if (demands.length === 0) return null;
  const expanded = expand(demands, context.document);
  const unsupported = expanded.alternatives[0];
  if (unsupported)
    throw schemaError(`${unsupported.node.path}/${unsupported.part}`, 'is not supported for property names');
  if (expanded.impossible) return context.languages.anyOf([]);
  const values = enumeratedValues(expanded.own);
  const language = stringLanguage(expanded.own, context.languages);
  if (values === null) return language;
  const listed = context.languages.anyOf(values.filter((value) => typeof value === 'string'));
  return language === null ? listed : context.languages.both(listed, language);
}

/**
 * Keys beyond the declared ones. A schema that lists properties or patterns and is silent about additional ones gets
 * none: what is generated then is what was asked for.
 */
function otherKeys(
  own: Own,
  names: readonly string[],
  allowed: Dfa | null,
  context: SchemaContext,
): ObjectKeys['others'] {
  const { languages } = context;
  const patterns = own.flatMap((node) => patternsOf(node, context));
  if (patterns.length > MAX_PATTERNS) {
    throw schemaError(own[0]?.path ?? '#', `more than ${MAX_PATTERNS} patterns of property names`);
  }
  const both = (a: Dfa | null, b: Dfa): Dfa => (a === null ? b : languages.both(a, b));
  const start = names.length === 0 ? allowed : both(allowed, languages.not(languages.anyOf(names)));
  let regions: { keys: Dfa | null; matching: ReadonlySet<SchemaNode> }[] = [
    { keys: start, matching: new Set() },
  ];
  for (const { language, value } of patterns) {
    regions = regions.flatMap(({ keys, matching }) => [
      { keys: both(keys, language), matching: new Set([...matching, value]) },
      { keys: both(keys, languages.not(language)), matching },
    ]);
    regions = regions.filter(({ keys }) => keys === null || !matchesNothing(keys));
  }
  return regions.flatMap(({ keys, matching }) => {
    const value = own.map((node) => otherValue(node, matching, context));
    return value.some((part) => part === null)
      ? []
      : [{ keys, value: all(...value.flatMap((part) => part ?? [])) }];
  });
}

/** What one schema demands of an undeclared key's value; null = the key must not be there. */
function otherValue(
  node: Own[number],
  matching: ReadonlySet<SchemaNode>,
  context: SchemaContext,
): SchemaNode[] | null {
  const found = patternsOf(node, context).flatMap(({ value }) => (matching.has(value) ? [value] : []));
  if (found.length > 0) return found;
  const { properties, patternProperties, additionalProperties } = node.schema;
  if (additionalProperties === false) return null;
  if (additionalProperties !== undefined) return additional(node, context.document);
  return properties === undefined && patternProperties === undefined ? [] : null;
}

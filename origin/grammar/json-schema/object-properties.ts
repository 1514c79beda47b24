import { acceptsText, type Dfa, isEmptyLanguage } from '../automaton/dfa.ts';
import { schemaError } from '../rules/grammar-error.ts';
import {
  type Conjunction,
  conjunctionOf,
  inScopeOf,
  type KeywordNode,
  type KeywordNodes,
  SOME_PROPERTY,
} from './conjunction.ts';
import type { SchemaContext, ValidationContext } from './schema-context.ts';
import { NEVER, type SchemaDocument, type SchemaNode } from './schema-document.ts';
import { both, languageOf } from './string-schema.ts';

const MAX_PATTERNS = 6;

/** The properties that an object may have, with the schemas of their values. */
export interface ObjectProperties {
  /** In the order in which they are generated. */
  readonly declared: readonly {
    readonly key: string;
    readonly required: boolean;
    readonly value: Conjunction;
  }[];
  /** Groups of undeclared keys. If `keys` is null, every string is a key. */
  readonly others: readonly { readonly keys: Dfa | null; readonly value: Conjunction }[];
}

/**
 * The schemas that apply to the value of a key: those of `properties` and `patternProperties`, else
 * `additionalProperties`.
 */
export function propertySchemas(nodes: KeywordNodes, key: string, context: ValidationContext): Conjunction {
  context.budget.spend(5 * nodes.length);
  return nodes.flatMap((node) => {
    const named = isDeclared(node, key) ? [context.document.child(node, 'properties', key)] : [];
    const matching = patternsOf(node, context).filter(({ language }) => acceptsText(language, key));
    const schemas = [...named, ...matching.map(({ value }) => value)];
    const some = node.schema[SOME_PROPERTY];
    return [
      ...conjunctionOf(...(schemas.length > 0 ? schemas : additional(node, context.document))),
      ...unevaluated(node, nodes, (evaluating) => evaluatesKey(evaluating, key, context), context),
      ...(some?.key === key ? some.value : []),
    ];
  });
}

export function requiredProperties(nodes: KeywordNodes): ReadonlySet<string> {
  return new Set(
    nodes.flatMap(({ schema: { required = [], [SOME_PROPERTY]: some } }) =>
      typeof some?.key === 'string' ? [...required, some.key] : required,
    ),
  );
}

export function objectProperties(nodes: KeywordNodes, context: SchemaContext): ObjectProperties {
  const required = requiredProperties(nodes);
  const names = new Set([
    ...nodes.flatMap(({ schema }) => Object.keys(schema.properties ?? {})),
    ...required,
  ]);
  const allowed = keyLanguage(nodes, context);
  const declared = [...names].map((key) => {
    const named = allowed === null || acceptsText(allowed, key);
    return {
      key,
      required: required.has(key),
      value: named ? propertySchemas(nodes, key, context) : conjunctionOf(NEVER),
    };
  });
  return { declared, others: otherKeys(nodes, [...names], allowed, context) };
}

function isDeclared({ schema }: KeywordNode, key: string): boolean {
  return schema.properties !== undefined && Object.hasOwn(schema.properties, key);
}

function patternsOf(node: KeywordNode, context: ValidationContext): { language: Dfa; value: SchemaNode }[] {
  return Object.keys(node.schema.patternProperties ?? {}).map((pattern) => ({
    language: context.languages.pattern(pattern, `${node.path}/patternProperties/${pattern}`),
    value: context.document.child(node, 'patternProperties', pattern),
  }));
}

/** The schema for what no other node evaluates, unless one does. */
function unevaluated(
  node: KeywordNode,
  nodes: KeywordNodes,
  evaluates: (node: KeywordNode) => boolean,
  context: ValidationContext,
): Conjunction {
  if (
    node.schema.unevaluatedProperties === undefined ||
    inScopeOf(node, nodes).some((evaluating) => evaluates(evaluating) || evaluatesAll(evaluating, node))
  )
    return [];
  return conjunctionOf(context.document.child(node, 'unevaluatedProperties'));
}

/** Whether a node leaves no property unevaluated. */
const evaluatesAll = ({ path, schema }: KeywordNode, beside: KeywordNode): boolean =>
  schema.additionalProperties !== undefined ||
  (schema.unevaluatedProperties !== undefined && path !== beside.path);

const evaluatesKey = (node: KeywordNode, key: string, context: ValidationContext): boolean =>
  isDeclared(node, key) || patternsOf(node, context).some(({ language }) => acceptsText(language, key));

function additional(node: KeywordNode, document: SchemaDocument): SchemaNode[] {
  return node.schema.additionalProperties === undefined ? [] : [document.child(node, 'additionalProperties')];
}

/** The schemas of `propertyNames`, which apply to every key. */
export function propertyNameSchemas(nodes: KeywordNodes, document: SchemaDocument): Conjunction {
  const naming = nodes.filter(({ schema }) => schema.propertyNames !== undefined);
  return conjunctionOf(...naming.map((node) => document.child(node, 'propertyNames')));
}

/** The keys that all `propertyNames` allow; null if all keys are allowed. */
function keyLanguage(nodes: KeywordNodes, context: SchemaContext): Dfa | null {
  const schemas = propertyNameSchemas(nodes, context.document);
  return schemas.length === 0 ? null : languageOf(schemas, context);
}

/**
 * Groups of undeclared keys. A schema with `properties` or `patternProperties` but without
 * `additionalProperties` gets no other keys, so that only declared properties are generated.
 */
function otherKeys(
  nodes: KeywordNodes,
  names: readonly string[],
  allowed: Dfa | null,
  context: SchemaContext,
): ObjectProperties['others'] {
  const { languages } = context;
  const patterns = nodes.flatMap((node) => patternsOf(node, context));
  if (patterns.length > MAX_PATTERNS) {
    const path = nodes.find(({ schema }) => schema.patternProperties)?.path ?? '#';
    throw schemaError(
      `${path}/patternProperties`,
      `at most ${MAX_PATTERNS} patterns may apply to one object, received ${patterns.length}`,
    );
  }
  const schemasOf = (matching: ReadonlySet<SchemaNode>): Conjunction | null => {
    const value = nodes.map((node) => otherValue(node, matching, nodes, context));
    const matches = (candidate: KeywordNode): boolean =>
      patternsOf(candidate, context).some((pattern) => matching.has(pattern.value));
    const rest = nodes.flatMap((node) => unevaluated(node, nodes, matches, context));
    return value.some((part) => part === null) || rest.some(({ node }) => node.schema === false)
      ? null
      : [...conjunctionOf(...value.flatMap((part) => part ?? [])), ...rest];
  };
  if (patterns.length === 0 && schemasOf(new Set()) === null) return [];
  const start =
    names.length === 0 ? allowed : both(allowed, languages.not(languages.anyOf(names)), languages);
  let regions: { keys: Dfa | null; matching: ReadonlySet<SchemaNode> }[] = [
    { keys: start, matching: new Set() },
  ];
  for (const { language, value } of patterns) {
    regions = regions.flatMap(({ keys, matching }) => [
      { keys: both(keys, language, languages), matching: new Set([...matching, value]) },
      { keys: both(keys, languages.not(language), languages), matching },
    ]);
    regions = regions.filter(({ keys }) => keys === null || !isEmptyLanguage(keys));
  }
  return regions.flatMap(({ keys, matching }) => {
    const value = schemasOf(matching);
    return value === null ? [] : [{ keys, value }];
  });
}

/** The schemas that one schema applies to an undeclared key's value; null if it forbids the key. */
function otherValue(
  node: KeywordNode,
  matching: ReadonlySet<SchemaNode>,
  nodes: KeywordNodes,
  context: SchemaContext,
): SchemaNode[] | null {
  const schemas = patternsOf(node, context).flatMap(({ value }) => (matching.has(value) ? [value] : []));
  if (schemas.length > 0) return schemas;
  const { properties, patternProperties, additionalProperties } = node.schema;
  if (additionalProperties === false) return null;
  if (additionalProperties !== undefined) return additional(node, context.document);
  // `unevaluatedProperties` says what a node allows beside its properties.
  const isDecided = nodes.some(
    (candidate) =>
      candidate.schema.unevaluatedProperties !== undefined && inScopeOf(candidate, nodes).includes(node),
  );
  const isOpen = context.style.openObjects === true || isDecided;
  return isOpen || (properties === undefined && patternProperties === undefined) ? [] : null;
}

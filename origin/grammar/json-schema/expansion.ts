import { schemaError } from '../rules/grammar-error.ts';
import {
  type Conjunction,
  conjunctionKey,
  conjunctionOf,
  derived,
  type KeywordNode,
  type KeywordNodes,
  type ListPart,
  type SchemaPart,
} from './conjunction.ts';
import { type CheckedSchema, isJsonObject } from './keywords.ts';
import type { SchemaDocument } from './schema-document.ts';
import { allOthers, type RivalsOf, violationsOf } from './violations.ts';

/** A list of alternatives from which no branch is chosen yet. */
export interface Alternatives extends SchemaPart {
  readonly part: ListPart;
}

/** A conjunction in which `$ref` and `allOf` are resolved. */
export interface Expanded {
  /** Whether a schema is `false`. */
  readonly impossible: boolean;
  readonly nodes: KeywordNodes;
  /** Lists of alternatives from which no branch is chosen yet. */
  readonly alternatives: readonly Alternatives[];
}

/** Comparisons expand the same conjunctions again and again. */
const EXPANDED = new WeakMap<Conjunction, Expanded>();

/**
 * Resolves `$ref` and `allOf`.
 * @throws GrammarError if a reference cannot be resolved or leads back to itself
 */
export function expand(conjunction: Conjunction, document: SchemaDocument): Expanded {
  const cached = EXPANDED.get(conjunction);
  if (cached !== undefined) return cached;
  const expanded = expandNew(conjunction, document);
  EXPANDED.set(conjunction, expanded);
  return expanded;
}

function expandNew(conjunction: Conjunction, document: SchemaDocument): Expanded {
  const nodes = new Map<string, KeywordNode>();
  const alternatives = new Map<string, Alternatives>();
  /** By path: false during the visit, true afterwards. */
  const followed = new Map<string, boolean>();
  let impossible = false;
  const visit = ({ node, part, scopes }: SchemaPart): void => {
    const { schema, path } = node;
    if (typeof schema === 'boolean') {
      impossible ||= schema === (part === 'not');
      return;
    }
    if (part === 'keywords') nodes.set(path, { path, schema, ...scoped(scopes, nodes.get(path)?.scopes) });
    else if (part !== 'whole') {
      const list = { node, part, ...scoped(scopes) };
      alternatives.set(conjunctionKey([list]), list);
    } else {
      const place = conjunctionKey([{ node, part, ...scoped(scopes) }]);
      const isFollowed = followed.get(place);
      if (isFollowed === false)
        throw schemaError(path, 'the reference leads back to itself without a value in between');
      if (isFollowed) return;
      followed.set(place, false);
      visit({ node, part: 'keywords', ...scoped(scopes) });
      const inner = scoped(scopes, isScope(schema) ? [path] : []);
      if (schema.$ref !== undefined)
        visit({ node: document.resolve(schema.$ref, `${path}/$ref`), part: 'whole', ...inner });
      schema.allOf?.forEach((_, i) => {
        visit({ node: document.child(node, 'allOf', i), part: 'whole', ...inner });
      });
      if (schema.not !== undefined) visit({ node: document.child(node, 'not'), part: 'not' });
      for (const list of listsOf(schema, inner.scopes !== undefined)) visit({ node, part: list, ...inner });
      followed.set(place, true);
    }
  };
  for (const schemaPart of conjunction) visit(schemaPart);
  return { impossible, nodes: [...nodes.values()], alternatives: [...alternatives.values()] };
}

/** Whether what other schemas evaluate matters to this one. */
export const isScope = (schema: CheckedSchema): boolean =>
  schema.unevaluatedProperties !== undefined || schema.unevaluatedItems !== undefined;

/** The union of scopes, absent if it is empty. */
function scoped(scopes: readonly string[] = [], more: readonly string[] = []): Pick<SchemaPart, 'scopes'> {
  const added = more.filter((path) => !scopes.includes(path));
  // Most often nothing is added, and comparisons call this for each part again.
  if (added.length === 0) return scopes.length === 0 ? {} : { scopes };
  return { scopes: [...scopes, ...new Set(added)].sort() };
}

const DEPENDENCIES = ['dependentRequired', 'dependentSchemas', 'dependencies'] as const;

/** What must hold if an object has a key. */
function dependents(node: KeywordNode, key: string, document: SchemaDocument): SchemaPart[] {
  return DEPENDENCIES.flatMap((keyword) => {
    const dependent = Object.hasOwn(node.schema[keyword] ?? {}, key) ? node.schema[keyword]![key] : undefined;
    if (dependent === undefined) return [];
    return Array.isArray(dependent)
      ? [derived(node, `${keyword} ${key}`, { type: 'object', required: dependent })]
      : conjunctionOf(document.child(node, keyword, key));
  });
}

/** @param isEvaluated whether it matters which properties and items an `if` evaluates */
function listsOf(schema: CheckedSchema, isEvaluated: boolean): ListPart[] {
  const dependent = new Set(DEPENDENCIES.flatMap((keyword) => Object.keys(schema[keyword] ?? {})));
  const isConditional = isEvaluated || schema.then !== undefined || schema.else !== undefined;
  return [
    ...(schema.anyOf === undefined ? [] : ['anyOf' as const]),
    ...(schema.oneOf === undefined ? [] : ['oneOf' as const]),
    ...(schema.if !== undefined && isConditional ? ['if' as const] : []),
    ...[...dependent].map((key) => `dependency ${key}` as const),
  ];
}

/**
 * Returns one conjunction per branch of a list of alternatives.
 * @param isPossible false for branches to leave out, because they contradict the keywords beside the list
 * @param rivalsOf the branches of a negated `oneOf` that may hold together
 */
export function branchesOf(
  expanded: Expanded,
  choice: Alternatives,
  document: SchemaDocument,
  isPossible: (branch: Conjunction) => boolean = () => true,
  rivalsOf: RivalsOf = allOthers,
): Conjunction[] {
  const rest = withoutChoice(expanded, choice);
  const branches = listedBranches(choice, document, rivalsOf);
  return branches.filter(isPossible).map((branch) => [...rest, ...branch]);
}

/** The conditions of a conjunction without one list of alternatives. */
export function withoutChoice({ nodes, alternatives }: Expanded, choice: Alternatives): Conjunction {
  return [
    ...nodes.map((node) => ({ node, part: 'keywords', ...scoped(node.scopes) }) as const),
    ...alternatives.filter((alternative) => alternative !== choice),
  ];
}

function listedBranches(
  choice: Alternatives,
  document: SchemaDocument,
  rivalsOf: RivalsOf,
): readonly Conjunction[] {
  const branches = unscopedBranches(choice, document, rivalsOf);
  if (choice.scopes === undefined) return branches;
  const evaluating = branches.map((branch) =>
    branch.map((part) => (part.part === 'whole' ? { ...part, ...scoped(choice.scopes) } : part)),
  );
  if (choice.part !== 'anyOf') return evaluating;
  // All branches that hold evaluate something.
  if (evaluating.length > MAX_EVALUATED_BRANCHES)
    throw schemaError(
      `${choice.node.path}/anyOf`,
      `may have at most ${MAX_EVALUATED_BRANCHES} branches beside unevaluatedProperties or unevaluatedItems`,
    );
  let sets: Conjunction[] = [[]];
  for (const branch of evaluating) sets = sets.flatMap((set) => [set, [...set, ...branch]]);
  return sets.slice(1);
}

const MAX_EVALUATED_BRANCHES = 6;

function unscopedBranches(
  { node, part }: Alternatives,
  document: SchemaDocument,
  rivalsOf: RivalsOf,
): readonly Conjunction[] {
  const { schema } = node as KeywordNode;
  switch (part) {
    case 'not':
      return violationsOf(node as KeywordNode, document, rivalsOf);
    case 'anyOf':
    case 'oneOf':
      return schema[part]!.map((_, i) => [
        { node: document.child(node, part, i), part: 'whole' },
        ...(part === 'oneOf' ? requireDiscriminator(node as KeywordNode) : []),
      ]);
    case 'if': {
      const condition = document.child(node, 'if');
      const then = schema.then === undefined ? [] : conjunctionOf(document.child(node, 'then'));
      const otherwise = schema.else === undefined ? [] : conjunctionOf(document.child(node, 'else'));
      return [
        [...conjunctionOf(condition), ...then],
        [{ node: condition, part: 'not' }, ...otherwise],
      ];
    }
    default: {
      const key = part.slice('dependency '.length);
      return [
        [derived(node, `${part} absent`, { properties: { [key]: false }, additionalProperties: true })],
        [
          derived(node, part, { type: 'object', required: [key] }),
          ...dependents(node as KeywordNode, key, document),
        ],
      ];
    }
  }
}

/**
 * OpenAPI requires the discriminator property in every value, even if the branches do not. Pydantic's
 * branches do not require a tag with a default, and without the tag a value may match several branches.
 */
function requireDiscriminator(node: KeywordNode): SchemaPart[] {
  const { discriminator } = node.schema;
  if (!isJsonObject(discriminator) || typeof discriminator.propertyName !== 'string') return [];
  return [derived(node, 'discriminator', { required: [discriminator.propertyName] })];
}

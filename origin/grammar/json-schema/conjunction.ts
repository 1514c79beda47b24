import type { JsonNumber } from '../rules/decimal.ts';
import type { CheckedSchema } from './keywords.ts';
import type { SchemaNode } from './schema-document.ts';

/**
 * A condition on a value: a whole schema, its keywords without the combining ones, its violation (`not`), or
 * one of its lists of alternatives. Those of a dependency are that its property is absent, or that what
 * depends on it holds.
 */
export interface SchemaPart {
  readonly node: SchemaNode;
  readonly part: 'whole' | 'keywords' | ListPart;
  /**
   * Paths of the schemas whose `unevaluatedProperties` and `unevaluatedItems` take what this condition
   * evaluates into account.
   */
  readonly scopes?: readonly string[];
}

export type ListPart = 'not' | 'anyOf' | 'oneOf' | 'if' | `dependency ${string}`;

/** Conditions that a value must satisfy together. */
export type Conjunction = readonly SchemaPart[];

export function conjunctionOf(...nodes: readonly SchemaNode[]): Conjunction {
  return nodes.map((node) => ({ node, part: 'whole' }));
}

/**
 * Leaves out repeated conditions and those that every value satisfies. If one is never satisfied, only it
 * stays.
 */
export function simplified(conjunction: Conjunction): Conjunction {
  const never = conjunction.find(({ node, part }) => part === 'whole' && node.schema === false);
  if (never !== undefined) return [never];
  const limiting = conjunction.filter(({ node, part }) => part !== 'whole' || node.schema !== true);
  if (limiting.length < 2) return limiting;
  return [...new Map(limiting.map((part) => [conjunctionKey([part]), part])).values()];
}

/** Conjunctions with equal keys are equal. */
export function conjunctionKey(conjunction: Conjunction): string {
  return conjunction
    .map(({ node, part, scopes }) =>
      scopes === undefined ? `${part} ${node.path}` : [`${part} ${node.path}`, ...scopes].join('\t'),
    )
    .join('\n');
}

/** A schema object whose keywords apply, except the combining ones and dependencies. */
export interface KeywordNode extends SchemaNode {
  readonly schema: CheckedSchema & DerivedKeywords;
  readonly scopes?: readonly string[];
}

export const NOT_MULTIPLE_OF = Symbol('not multipleOf');
export const SOME_PROPERTY = Symbol('some property');

/** Conditions that no keyword expresses. They follow from the negation of keywords. */
interface DerivedKeywords {
  readonly [NOT_MULTIPLE_OF]?: JsonNumber;
  readonly [SOME_PROPERTY]?: SomeProperty;
}

/** An object has a property whose name and value satisfy conditions. */
export interface SomeProperty {
  readonly names: Conjunction;
  readonly value: Conjunction;
  /**
   * The declared property that is meant, or null for an undeclared one. Undefined until one of them is
   * chosen.
   */
  readonly key?: string | null;
}

/**
 * The nodes that evaluate something for `unevaluatedProperties` or `unevaluatedItems` of a node, including
 * itself.
 */
export function inScopeOf({ path }: SchemaNode, nodes: KeywordNodes): KeywordNodes {
  return nodes.filter((node) => node.path === path || node.scopes?.includes(path));
}

/** Schema objects whose keywords apply together. */
export type KeywordNodes = readonly KeywordNode[];

/** A condition that follows from a keyword of a schema; its path says how. */
export function derived({ path }: SchemaNode, name: string, schema: KeywordNode['schema']): SchemaPart {
  return { node: { path: `${path} ${name}`, schema }, part: 'keywords' };
}

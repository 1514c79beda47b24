import { schemaError } from '../grammar-error.ts';
import { type CheckedSchema, isJsonObject } from './keywords.ts';
import type { SchemaDocument, SchemaNode } from './schema-document.ts';

/**
 * One thing a value must satisfy: a whole schema, its keywords apart from the combining ones, or one of its lists of
 * alternatives. A conjunction is a list of demands.
 */
export interface SchemaPart {
  readonly node: SchemaNode;
  readonly part: 'whole' | 'keywords' | 'anyOf' | 'oneOf';
}

export type Conjunction = readonly SchemaPart[];

/** A list of alternatives of which one is to be chosen. */
export interface Alternatives extends SchemaPart {
  readonly part: 'anyOf' | 'oneOf';
  readonly branches: number;
}

export function conjunctionOf(...nodes: readonly SchemaNode[]): Conjunction {
  return nodes.map((node) => ({ node, part: 'whole' }));
}

/** Equal keys part the same. */
export function conjunctionKey(conjunction: Conjunction): string {
  return conjunction.map(({ node, part }) => `${part} ${node.path}`).join('\n');
}

/** Schemas whose own keywords, apart from the combining ones, must hold; in the order in which they were met. */
export interface KeywordNode extends SchemaNode {
  readonly schema: CheckedSchema;
}

export type KeywordNodes = readonly KeywordNode[];

/** A conjunction with `$ref` and `allOf` followed. */
export interface Expanded {
  /** Some schema is `false`. */
  readonly impossible: boolean;
  readonly nodes: KeywordNodes;
  /** Lists of alternatives not yet chosen from. */
  readonly alternatives: readonly Alternatives[];
}

export function expand(conjunction: Conjunction, document: SchemaDocument): Expanded {
  const nodes = new Map<string, KeywordNode>();
  const alternatives = new Map<string, Alternatives>();
  /** By path; false while it is being followed. */
  const followed = new Map<string, boolean>();
  let impossible = false;
  const visit = ({ node, part }: SchemaPart): void => {
    const { schema, path } = node;
    if (schema === true) return;
    if (schema === false) {
      impossible = true;
      return;
    }
    if (part === 'keywords') nodes.set(path, { path, schema });
    else if (part !== 'whole') {
      alternatives.set(conjunctionKey([{ node, part }]), { node, part, branches: schema[part]?.length ?? 0 });
    } else {
      const known = followed.get(path);
      if (known === false) throw schemaError(path, 'the reference leads back to itself without progress');
      if (known) return;
      followed.set(path, false);
      visit({ node, part: 'keywords' });
      if (schema.$ref !== undefined)
        visit({ node: document.resolve(schema.$ref, `${path}/$ref`), part: 'whole' });
      schema.allOf?.forEach((_, i) => {
        visit({ node: document.child(node, 'allOf', i), part: 'whole' });
      });
      if (schema.anyOf !== undefined) visit({ node, part: 'anyOf' });
      if (schema.oneOf !== undefined) visit({ node, part: 'oneOf' });
      followed.set(path, true);
    }
  };
  for (const schemaPart of conjunction) visit(schemaPart);
  return { impossible, nodes: [...nodes.values()], alternatives: [...alternatives.values()] };
}

/** The conjunctions that result from choosing each branch of one list of alternatives. */
export function branchesOf(
  expanded: Expanded,
  choice: Alternatives,
  document: SchemaDocument,
): Conjunction[] {
  const rest: SchemaPart[] = [
    ...expanded.nodes.map((node) => ({ node, part: 'keywords' }) as const),
    ...expanded.alternatives.filter((other) => other !== choice),
  ];
  const { node, part, branches } = choice;
  return Array.from({ length: branches }, (_, i) => [
    ...rest,
    { node: document.child(node, part, i), part: 'whole' },
    ...requireDiscriminator(choice),
  ]);
}

/**
 * OpenAPI wants the property that a discriminator names in every value, whatever the branches require: Pydantic's do
 * not where the tag has a default, and without it a value may match several.
 */
function requireDiscriminator({ node: { path, schema }, part }: Alternatives): SchemaPart[] {
  if (part !== 'oneOf' || typeof schema === 'boolean' || !isJsonObject(schema.discriminator)) return [];
  const { propertyName } = schema.discriminator;
  if (typeof propertyName !== 'string') return [];
  return [
    { node: { path: `${path}/discriminator`, schema: { required: [propertyName] } }, part: 'keywords' },
  ];
}
